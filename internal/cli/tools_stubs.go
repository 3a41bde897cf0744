package cli

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/stubs"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

func stubsCommand(sh Shell) *cobra.Command {
	chosen := map[string]*bool{}
	c := operatorCommand(sh, "recurgentd tools", operation{use: "stubs [ROLE] DIR",
		short: "Write typed wrappers of methods for Python, TypeScript or Go", least: 1, most: 2,
		long: `Write typed wrappers of all methods that have a program, of the roles that tools list shows or of one role: what they take and return, by their
interfaces, and what they do, as comments. Editors complete and check them. They call the daemon by its clients
for Python and Go, and for TypeScript by a session of its client. The same interfaces make the same bytes: written
again, the files change where an interface changed. A file that something else wrote is left as it is.`,
		example: "./tools --python --typescript", run: func(t *errand) error { return t.stubs(chosen) }})
	c.Example += "\n  recurgentd tools stubs calculator ./tools --go"
	for name, l := range stubs.Languages() {
		chosen[name] = c.Flags().Bool(name, false, "write "+l.File)
	}
	return c
}

// stubs writes the wrappers in the chosen languages.
func (t *errand) stubs(chosen map[string]*bool) error {
	var languages []string
	for _, name := range slices.Sorted(maps.Keys(chosen)) {
		if *chosen[name] {
			languages = append(languages, name)
		}
	}
	if len(languages) == 0 {
		return exitWith(ExitUsage, errors.New("say in which languages: --python, --typescript, --go"))
	}
	methods, err := t.stubbed()
	if err != nil {
		return err
	}
	if len(methods) == 0 {
		return exitWith(ExitFailed,
			errors.New(strings.Join(append(slices.Clone(t.args[:len(t.args)-1]), "no method has a program yet"), ": ")))
	}
	written := []string{}
	for _, name := range languages {
		path, err := stubs.Write(t.args[len(t.args)-1], stubs.Languages()[name], methods)
		if err != nil {
			return exitWith(ExitUsage, err)
		}
		written = append(written, path)
	}
	if !t.out.human() {
		return t.out.value(map[string]any{"files": written, "methods": len(methods)})
	}
	return t.out.line("written: %s (%d methods)", strings.Join(written, ", "), len(methods))
}

// stubbed returns the methods of the named role, or of all roles, with their interfaces.
func (t *errand) stubbed() ([]stubs.Method, error) {
	quiet := *t
	quiet.out = &output{sh: t.sh, form: formTable}
	roles := []string{t.args[0]}
	if len(t.args) == 1 {
		known, err := pages[struct {
			Role string `json:"role"`
		}](&quiet, "/v1/tools")
		if err != nil {
			return nil, err
		}
		roles = nil
		for _, k := range known {
			roles = append(roles, k.Role)
		}
	}
	var methods []stubs.Method
	for _, role := range roles {
		all, err := pages[artifactFields](&quiet, client.ToolPath(role)+"/methods")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", text.Cell(role), err)
		}
		for _, a := range all {
			var whole artifactFields
			if err := t.c.Get(t.ctx, client.MethodPath(role, a.MethodName), &whole); err != nil {
				return nil, err
			}
			if whole.Code != "" {
				methods = append(methods, stubs.Method{Role: role, Name: a.MethodName, Interface: whole.Interface})
			}
		}
	}
	return methods, nil
}
