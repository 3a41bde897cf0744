package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/eject"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

func importCommand(sh Shell) *cobra.Command {
	var replace bool
	c := operatorCommand(sh, "recurgentd tools", operation{use: "import DIR",
		short: "Bring ejected programs into a daemon", least: 1, most: 1, audited: true,
		long: `Bring the programs of a directory that tools eject has written into a daemon, with their examples and contracts.
Each program goes through the gate and must hold its examples before anything of its method is stored: a method
comes whole or not at all. The files that its examples read are uploaded. No model is asked. A method that has another program is refused, unless --replace is
given; a contract that the daemon has stays.`,
		exits: `Exit status: 0 when every method was imported or was there already, 1 when one was refused, 2 for a wrong command
line or directory, 3 when no daemon answers.`,
		example: "./calculator --reason reviewed", run: func(t *errand) error { return t.importDir(replace) }})
	c.Example += "\n  recurgentd tools import ./calculator --replace --url http://127.0.0.1:8080"
	c.Flags().BoolVar(&replace, "replace", false, "replace programs and examples that are there")
	return c
}

// imported is the result of importing one method.
type imported struct {
	Role   string `json:"role"`
	Method string `json:"method"`
	Result string `json:"result"` // imported, replaced, unchanged, refused
	Reason string `json:"reason,omitempty"`
}

// imports is one run of the command import.
type imports struct {
	*errand
	tools   []eject.Tool
	replace bool
	// uploads holds the module's files by their ids in the module.
	uploads map[string]*uploaded
}

// importDir imports the module and prints the result for each method. It returns an error if one was refused.
func (t *errand) importDir(replace bool) error {
	m, all, err := eject.Read(t.args[0])
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	in := &imports{errand: t, tools: m.Tools, replace: replace, uploads: map[string]*uploaded{}}
	results, err := in.importAll(all)
	if err == nil {
		err = in.removeUnused()
	}
	if err != nil {
		return err
	}
	refused := 0
	var rows [][]string
	var notes []string
	for _, r := range results {
		if r.Result == "refused" {
			refused++
			notes = append(notes, text.Cell(r.Role)+"."+text.Cell(r.Method)+" is refused: "+r.Reason)
		}
		rows = append(rows, []string{r.Role, r.Method, r.Result})
	}
	if !t.out.human() {
		err = t.out.value(map[string]any{"methods": results, "missing": append([]string{}, m.Missing...)})
	} else if err = t.out.table("ROLE METHOD RESULT", rows); err == nil {
		for _, role := range m.Missing {
			notes = append(notes, text.Cell(role)+" is called and is not in the directory")
		}
		for _, n := range notes {
			err = errors.Join(err, t.out.line("%s", n))
		}
	}
	if err == nil && refused > 0 {
		err = exitWith(ExitFailed, fmt.Errorf("%d of %s refused", refused, text.Plural(len(results), "method")))
	}
	return err
}

// importAll imports in rounds, because a program may pass its examples only after the programs that it calls are
// imported.
func (t *imports) importAll(all []eject.Stored) ([]imported, error) {
	results := make([]imported, len(all))
	for done := -1; ; {
		round := 0
		for i := range all {
			if r := &results[i]; r.Result == "" || r.Result == "refused" {
				*r = imported{Role: all[i].Role, Method: all[i].Method}
				if err := t.importMethod(&all[i], r); err != nil {
					return nil, err
				}
			}
			if results[i].Result != "refused" {
				round++
			}
		}
		if round == len(all) || round == done {
			return results, nil
		}
		done = round
	}
}

// importMethod imports one method, or sets the reason for refusing it. The error means that the daemon cannot be
// reached.
func (t *imports) importMethod(x *eject.Stored, r *imported) error {
	path := client.MethodPath(x.Role, x.Method)
	var before artifactFields
	var no *client.Refusal
	err := t.c.Get(t.ctx, path, &before)
	if err != nil && (!errors.As(err, &no) || no.Status != http.StatusNotFound) {
		return err
	}
	same := before.Code != "" && strings.TrimSpace(before.Code) == strings.TrimSpace(x.Code)
	if before.Code != "" && !same && !t.replace {
		r.Result, r.Reason = "refused", "it has another program; --replace replaces it"
		return nil
	}
	// The order matters: the program must pass its examples before anything is stored, and the contract comes before
	// the program.
	examples, err := t.examplesToPut(x, path, before.Code != "" && !t.replace)
	if err == nil {
		err = t.hold(x, path, examples)
	}
	if err == nil {
		err = t.contract(x.Role)
	}
	if err == nil {
		err = t.place(x, path, &before, same, examples)
	}
	if err == nil && examples != nil {
		t.keepFiles(x)
	}
	switch {
	case errors.As(err, &no):
		r.Result, r.Reason = "refused", refusalOf(no)
	case errors.As(err, new(*notHeld)):
		r.Result, r.Reason = "refused", err.Error()
	case err != nil:
		return err
	case same:
		r.Result = "unchanged"
	case before.Code != "":
		r.Result = "replaced"
	default:
		r.Result = "imported"
	}
	return nil
}

// examplesToPut returns the examples of the file, or nil if the daemon's examples are to stay and there are any.
func (t *imports) examplesToPut(x *eject.Stored, path string, keep bool) ([]json.RawMessage, error) {
	if x.File == nil {
		return nil, nil
	}
	if keep {
		var there exampleFields
		if err := t.c.Get(t.ctx, path+"/examples", &there); err != nil || len(there.Examples) > 0 {
			return nil, err
		}
	}
	return t.withFiles(x)
}

// A notHeld is the error for examples that a program does not satisfy.
type notHeld struct{ text string }

func (e *notHeld) Error() string { return e.text }

// hold runs the program on the examples before anything is stored.
func (t *imports) hold(x *eject.Stored, path string, examples []json.RawMessage) error {
	body := map[string]any{"code": x.Code}
	if examples != nil {
		body["examples"] = examples
	}
	var run operator.ExampleRun
	if err := t.c.JSON(t.ctx, http.MethodPost, path+"/examples/run", body, &run); err != nil {
		return err
	}
	for _, r := range run.Results {
		if r.Result == "failed" {
			return &notHeld{fmt.Sprintf("it does not hold %s of %s; %s answers %s", text.Plural(run.Failed, "example"),
				number(int64(len(run.Results))), text.Cell(r.ID), text.Clean(answerOf(r.Got, r.ErrorType), 200))}
		}
	}
	return nil
}

// place stores the program and the examples. If the examples are refused, it restores the previous state.
func (t *imports) place(x *eject.Stored, path string, before *artifactFields, same bool,
	examples []json.RawMessage) error {
	if !same {
		if _, err := t.c.Do(t.ctx, http.MethodPut, path, t.programBody(x.Code, x.Interface)); err != nil {
			return err
		}
	}
	if len(examples) == 0 && (before.Code == "" || examples == nil) {
		return nil
	}
	_, err := t.c.Do(t.ctx, http.MethodPut, path+"/examples", map[string]any{"examples": examples})
	if err == nil || same {
		return err
	}
	if before.Code == "" {
		_, undo := t.c.Do(t.ctx, http.MethodDelete, path+"?reason="+url.QueryEscape("its examples were refused"), nil)
		return errors.Join(err, undo)
	}
	_, undo := t.c.Do(t.ctx, http.MethodPost, path+"/rollback",
		map[string]any{"generation": before.Current, "reason": "its examples were refused"})
	return errors.Join(err, undo)
}

// programBody returns the body that stores a program, with its interface if the author declared one.
func (t *errand) programBody(code string, takes *agent.Interface) map[string]any {
	body := map[string]any{"code": code}
	if takes != nil && takes.Origin == agent.OriginDeclared {
		body["summary"], body["parameters"] = takes.Summary, takes.Parameters
		if takes.Returns != nil {
			body["returns"] = takes.Returns
		}
	}
	t.withReason(body)
	return body
}

// contract registers the contract of a role that the daemon does not have. It must precede the programs, which are made
// for it.
func (t *imports) contract(role string) error {
	i := slices.IndexFunc(t.tools, func(tool eject.Tool) bool { return tool.Role == role })
	if i < 0 || t.tools[i].Contract.Empty() && len(t.tools[i].Methods) == 0 {
		return nil
	}
	tool := t.tools[i]
	var no *client.Refusal
	var there struct{ Revision int64 } // 0 means that it has programs but nobody registered it
	err := t.c.Get(t.ctx, client.ToolPath(role), &there)
	if err == nil && there.Revision > 0 || err != nil && (!errors.As(err, &no) || no.Status != http.StatusNotFound) {
		return err
	}
	body := map[string]any{}
	for name, v := range map[string]json.RawMessage{"deliverable": tool.Deliverable, "acceptance": tool.Acceptance,
		"failure_policy": tool.FailurePolicy, "signature": tool.Signature} {
		if v != nil {
			body[name] = v
		}
	}
	if tool.Purpose != "" {
		body["purpose"] = tool.Purpose
	}
	if len(tool.Methods) > 0 {
		body["methods"] = tool.Methods
	}
	_, err = t.c.Do(t.ctx, http.MethodPut, client.ToolPath(role), body)
	return err
}

// refusalOf returns the daemon's reason on one line.
func refusalOf(no *client.Refusal) string {
	words := no.Title
	if no.Detail != "" {
		words = no.Detail
	}
	for _, e := range no.Errors {
		words += "; " + strings.TrimSpace(e.Pointer+" "+e.Detail)
	}
	return text.Clean(words, 400)
}

// An uploaded is a file of the module that was sent to the daemon.
type uploaded struct {
	id   string // at the daemon
	kept bool   // stored examples refer to it
}

// fileReference matches a reference to a file in JSON text. It cannot match inside a JSON string, where the quotes
// would be escaped.
var fileReference = regexp.MustCompile(`(\{\s*"\` + agent.FileKey + `"\s*:\s*)("[^"\\]*")(\s*\})`)

// withFiles returns the examples of the file with references to the daemon's files in place of the module's. It uploads
// files that the daemon lacks.
func (t *imports) withFiles(x *eject.Stored) ([]json.RawMessage, error) {
	ids := map[string]json.RawMessage{}
	for id, f := range x.Files {
		here, err := t.fileHere(id, f)
		if err != nil {
			return nil, err
		}
		ids[string(agent.Encoded(id))] = agent.Encoded(here)
	}
	examples := examplesOf(x.File)
	for i := range examples {
		examples[i] = fileReference.ReplaceAllFunc(examples[i], func(ref []byte) []byte {
			part := fileReference.FindSubmatch(ref)
			if here := ids[string(part[2])]; here != nil {
				return bytes.Join([][]byte{part[1], here, part[3]}, nil)
			}
			return ref
		})
	}
	return examples, nil
}

// fileHere returns the daemon's id of a file of the module.
func (t *imports) fileHere(id string, f eject.File) (string, error) {
	if known := t.uploads[id]; known != nil {
		return known.id, nil
	}
	var there agent.File
	var no *client.Refusal
	err := t.c.Get(t.ctx, client.FilePath(id), &there)
	if err == nil && there.SHA256 == f.SHA256 {
		return id, nil
	}
	if err != nil && (!errors.As(err, &no) || no.Status != http.StatusNotFound) {
		return "", err
	}
	there, err = t.c.Upload(t.ctx, f.File, bytes.NewReader(f.Data), f.Bytes)
	if err != nil {
		return "", err
	}
	t.uploads[id] = &uploaded{id: there.ID}
	return there.ID, nil
}

// keepFiles records that stored examples refer to the method's files.
func (t *imports) keepFiles(x *eject.Stored) {
	for id := range x.Files {
		if f := t.uploads[id]; f != nil {
			f.kept = true
		}
	}
}

// removeUnused deletes the uploaded files of methods that were refused.
func (t *imports) removeUnused() error {
	var failed error
	for _, f := range t.uploads {
		if !f.kept {
			_, err := t.c.Do(t.ctx, http.MethodDelete, client.FilePath(f.id), nil)
			failed = errors.Join(failed, err)
		}
	}
	return failed
}
