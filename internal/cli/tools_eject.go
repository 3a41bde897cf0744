package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/mask"
	"github.com/recurgentd/recurgentd/internal/cli/eject"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// moveCommands returns the commands that move programs between a daemon and a directory, or write wrappers for them.
func moveCommands(sh Shell) []*cobra.Command {
	return []*cobra.Command{ejectCommand(sh), importCommand(sh), stubsCommand(sh)}
}

func ejectCommand(sh Shell) *cobra.Command {
	c := operatorCommand(sh, "recurgentd tools", operation{use: "eject ROLE [METHOD] DIR",
		short: "Write programs as a Go module of their own", least: 2, most: 3,
		long: `Write the programs of a role, or one of them, as a Go module that needs nothing of recurgentd: the programs with
the package they import, their examples and recorded calls as tests, and a main that reads a call as JSON and
prints its outcome. Roles that a program calls by a literal name come along; others are named as missing. go test
./... runs the tests without network: what a recorded call took from outside is replayed, and the files that it read
come along, up to 1 MiB each. Cases that hold a secret, read the clock or use randomness are left out and named. DIR must be missing or empty; it appears whole or not at
all.`,
		example: "calculator ./calculator", run: (*errand).eject})
	c.Example += "\n  recurgentd tools eject tax net ./tax-net --output json"
	return c
}

// eject collects the programs of a role or of one method, follows the roles that they call, and writes the module.
func (t *errand) eject() error {
	dir := t.args[len(t.args)-1]
	if err := eject.Vacant(dir); err != nil {
		return exitWith(ExitUsage, err)
	}
	var policy struct {
		RedactKeys []string `json:"redact_keys"`
	}
	if err := t.c.Get(t.ctx, "/v1/policy", &policy); err != nil {
		return err
	}
	g := &gathering{errand: t, seen: map[string]bool{}}
	var err error
	if len(t.args) == 3 {
		err = g.method(t.args[0], t.args[1], true)
	} else {
		err = g.role(t.args[0], true)
	}
	for len(g.called) > 0 && err == nil {
		role := g.called[0]
		g.called = g.called[1:]
		err = g.role(role, false)
	}
	if err != nil {
		return err
	}
	if err := eject.Write(dir, &g.m, mask.Compile(policy.RedactKeys)); err != nil {
		return exitWith(ExitUsage, err)
	}
	return t.ejected(dir, &g.m, g.notes)
}

// ejected reports what was written.
func (t *errand) ejected(dir string, m *eject.Manifest, notes []string) error {
	if !t.out.human() {
		return t.out.value(struct {
			*eject.Manifest
			Dir   string   `json:"dir"`
			Notes []string `json:"notes"`
		}{m, dir, append([]string{}, notes...)})
	}
	var rows [][]string
	for _, x := range m.Methods {
		rows = append(rows, []string{x.Role, x.Method, x.Dir, number(int64(len(x.Examples))),
			number(int64(len(x.Fixtures)))})
	}
	if err := t.out.table("ROLE METHOD DIRECTORY EXAMPLES RECORDED", rows); err != nil {
		return err
	}
	for _, l := range m.LeftOut {
		notes = append(notes, fmt.Sprintf("%s.%s: %s was not written as a test: %s", text.Cell(l.Role), text.Cell(l.Method),
			text.Cell(l.Case), l.Reason))
	}
	for _, role := range m.Missing {
		notes = append(notes, text.Cell(role)+" is called and has no program here")
	}
	for _, n := range notes {
		if err := t.out.line("%s", n); err != nil {
			return err
		}
	}
	return t.out.line("written to %s; go test ./... there runs the tests", text.Clean(dir, 200))
}

// A gathering collects programs and the programs that they call.
type gathering struct {
	*errand
	m eject.Manifest
	// seen holds methods, as role NUL method, and roles.
	seen   map[string]bool
	called []string // roles still to be collected
	bytes  int64    // size of the collected files
	notes  []string
}

// role collects all programs of a role. If it was asked for, it must have at least one.
func (g *gathering) role(role string, asked bool) error {
	if g.seen[role] {
		return nil
	}
	g.seen[role] = true
	quiet := *g.errand
	quiet.out = &output{sh: g.sh, form: formTable}
	all, err := pages[artifactFields](&quiet, client.ToolPath(role)+"/methods")
	var no *client.Refusal
	if err != nil && (asked || !errors.As(err, &no) || no.Status != http.StatusNotFound) {
		return err
	}
	before := len(g.m.Methods)
	for _, a := range all {
		if err := g.method(role, a.MethodName, false); err != nil {
			return err
		}
	}
	switch {
	case asked && len(g.m.Methods) == before:
		return exitWith(ExitFailed, fmt.Errorf("%s has no program to write%s", text.Cell(role),
			strings.Join(append([]string{""}, g.notes...), "; ")))
	case !slices.ContainsFunc(g.m.Methods, func(x eject.Program) bool { return x.Role == role }):
		g.m.Missing = append(g.m.Missing, role)
	}
	return nil
}

// method collects one program. If it was asked for, it must exist and not be quarantined.
func (g *gathering) method(role, method string, asked bool) error {
	if key := role + "\x00" + method; g.seen[key] {
		return nil
	} else {
		g.seen[key] = true
	}
	path := client.MethodPath(role, method)
	var a artifactFields
	if err := g.c.Get(g.ctx, path, &a); err != nil {
		return err
	}
	reason := ""
	switch {
	case a.Code == "":
		reason = "has no program yet"
	case a.Quarantined:
		reason = "is quarantined"
	}
	if reason != "" {
		reason = text.Cell(role) + "." + text.Cell(method) + " " + reason
		if asked {
			return exitWith(ExitFailed, errors.New(reason))
		}
		g.notes = append(g.notes, reason+" and is left out")
		return nil
	}
	x := eject.Program{Role: role, Method: method, Interface: a.Interface, Code: a.Code}
	// The interface shown to calls without a contract may belong to another generation.
	if g := a.Find(a.Current); g != nil {
		x.Interface = g.Interface
	}
	if err := g.evidence(path, &x); err != nil {
		return err
	}
	if err := g.registry(role); err != nil {
		return err
	}
	g.m.Methods = append(g.m.Methods, x)
	g.follow(&x)
	return nil
}

// evidence collects the active examples and the fixtures of a program, with their recorded effects and files.
func (g *gathering) evidence(path string, x *eject.Program) error {
	var examples exampleFields
	var recorded struct {
		Data    []agent.Fixture            `json:"data"`
		Effects map[string]json.RawMessage `json:"effects"`
	}
	if err := errors.Join(g.c.Get(g.ctx, path+"/examples", &examples),
		g.c.Get(g.ctx, path+"/fixtures", &recorded)); err != nil {
		return err
	}
	for _, e := range examples.Examples {
		if e.State == agent.ExampleActive {
			x.Examples = append(x.Examples, e)
		}
	}
	x.Effects, x.Fixtures = recorded.Effects, recorded.Data
	return g.files(x)
}

// files collects the stored files that the cases of a program read.
func (g *gathering) files(x *eject.Program) error {
	x.Files = map[string]eject.File{}
	for _, id := range x.Reads() {
		var f eject.File
		err := g.c.Get(g.ctx, client.FilePath(id), &f.File)
		if err == nil && f.Fits(g.bytes) {
			f.Data, err = g.c.Do(g.ctx, http.MethodGet, client.FilePath(id)+"/content", nil)
		}
		var no *client.Refusal
		if errors.As(err, &no) && (no.Status == http.StatusNotFound || no.Code == "file_damaged") {
			continue
		}
		if err != nil {
			return err
		}
		g.bytes += int64(len(f.Data))
		x.Files[id] = f
	}
	return nil
}

// registry collects the contract of a role, if it is registered.
func (g *gathering) registry(role string) error {
	if slices.ContainsFunc(g.m.Tools, func(t eject.Tool) bool { return t.Role == role }) {
		return nil
	}
	var t agent.Tool
	err := g.c.Get(g.ctx, client.ToolPath(role), &t)
	var no *client.Refusal
	if errors.As(err, &no) && no.Status == http.StatusNotFound {
		return nil
	}
	if err == nil {
		g.m.Tools = append(g.m.Tools, eject.Tool{Role: role, Contract: t.Contract, Methods: t.Methods})
	}
	return err
}

var (
	toolUse     = regexp.MustCompile(`\.(?:Tool|Delegate)\(\s*([^,)\s]*)`)
	literalUse  = regexp.MustCompile("\\.(?:Tool|Delegate)\\(\\s*(\"(?:[^\"\\\\\n]|\\\\.)*\"|`[^`]*`)")
	literalHead = "\"`"
)

// follow notes the roles that a program calls by a literal name.
func (g *gathering) follow(x *eject.Program) {
	for _, found := range literalUse.FindAllStringSubmatch(x.Code, -1) {
		if role, err := strconv.Unquote(found[1]); err == nil && !g.seen[role] {
			g.called = append(g.called, role)
		}
	}
	for _, found := range toolUse.FindAllStringSubmatch(x.Code, -1) {
		if found[1] == "" || !strings.Contains(literalHead, found[1][:1]) {
			g.notes = append(g.notes,
				fmt.Sprintf("%s.%s computes the name of a role that it calls; eject that role, too, if it is missing "+
					"here",
					text.Cell(x.Role), text.Cell(x.Method)))
			return
		}
	}
}
