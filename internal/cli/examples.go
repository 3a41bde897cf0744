package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/examplefile"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

const exitsOfExamples = `Exit status: 0 when every example holds or shows nothing now, 1 when one does not hold, 2 for a wrong command line
or file, 3 when no daemon answers or it refuses the request.`

// examplesCommand returns the group of commands for the examples of a method.
func examplesCommand(sh Shell) *cobra.Command {
	const parent = "recurgentd tools examples"
	root := &cobra.Command{Use: "examples", Short: "Keep the expected answers of a method", Args: cobra.NoArgs,
		Long: `Keep the examples of a method: expected answers that each of its programs must give before it is used.
Examples may be stored before the method exists. A file holds the examples of one method, as YAML or JSON, and
fits a repository:

  role: tax
  method: net
  examples:
    - args: [1000]
      expect: {value: 700}          # or {error_type: invalid_input}, or {schema: {...}}
      note: 70 percent, not 60      # kwargs, context, tolerance and id may stand here, too

recurgentd test runs a folder of such files.

` + exitsOfClients,
		Example: `  recurgentd tools examples get tax net > examples/net.yaml
  recurgentd tools examples put tax net examples/net.yaml
  recurgentd tools examples run tax net`}
	root.AddCommand(
		operatorCommand(sh, parent, operation{use: "list ROLE METHOD",
			short: "List the examples of a method, proposed ones too", example: "tax net", least: 2, most: 2,
			run: (*errand).listExamples}),
		operatorCommand(sh, parent, operation{use: "get ROLE METHOD",
			short: "Print the active examples of a method as a file", example: "tax net > net.yaml", least: 2, most: 2,
			run: (*errand).getExamples}),
		operatorCommand(sh, parent, operation{use: "put [ROLE METHOD] FILE",
			short:   "Replace the active examples of a method by those of a file (- is standard input)",
			example: "tax net net.yaml", least: 1, most: 3, run: (*errand).putExamples}),
		runExamplesCommand(sh, parent))
	for _, decision := range []struct{ name, short string }{{"accept", "Make a proposed example count"},
		{"reject", "Drop a proposed example"}} {
		root.AddCommand(operatorCommand(sh, parent, operation{use: decision.name + " ROLE METHOD ID",
			short: decision.short, example: "tax net ex_06gzqwq081srb0e6zx42fm96t6", least: 3, most: 3,
			run: func(t *errand) error {
				path := t.examplesPath() + "/" + url.PathEscape(t.args[2]) + "/" + decision.name
				data, err := t.c.Do(t.ctx, http.MethodPost, path, nil)
				if err != nil {
					return err
				}
				return t.showExamples(data)
			}}))
	}
	return root
}

func (t *errand) examplesPath() string {
	return client.MethodPath(t.args[0], t.args[1]) + "/examples"
}

// exampleFields decodes a list of examples.
type exampleFields struct {
	Examples []agent.Example `json:"examples"`
}

func (t *errand) listExamples() error {
	data, err := t.c.Do(t.ctx, http.MethodGet, t.examplesPath(), nil)
	if err != nil {
		return err
	}
	return t.showExamples(data)
}

func (t *errand) showExamples(data []byte) error {
	if !t.out.human() {
		return t.out.document(data)
	}
	var all exampleFields
	if err := t.read("the examples", data, &all); err != nil {
		return err
	}
	var rows [][]string
	for _, x := range all.Examples {
		rows = append(rows, []string{x.ID, x.State, inputOf(x.Args, x.Kwargs), describeExpect(x.Expect), x.By, x.Note})
	}
	return t.table("ID STATE INPUT EXPECT BY NOTE", rows)
}

// describeExpect formats an expectation for a table.
func describeExpect(e agent.Expectation) string {
	switch {
	case e.ErrorType != "":
		return "error " + e.ErrorType
	case e.Schema != nil:
		return "a value of the schema " + string(e.Schema)
	}
	return text.JSON(e.Value)
}

// getExamples prints the active examples as a file, in YAML unless JSON is requested.
func (t *errand) getExamples() error {
	var all exampleFields
	if err := t.c.Get(t.ctx, t.examplesPath(), &all); err != nil {
		return err
	}
	file := examplefile.Document{Role: t.args[0], Method: t.args[1], Examples: []examplefile.Entry{}}
	for _, x := range all.Examples {
		if x.State == agent.ExampleActive {
			file.Examples = append(file.Examples, examplefile.EntryOf(x))
		}
	}
	data, err := json.Marshal(file)
	if err != nil {
		return err
	}
	if t.out.form == formJSON {
		return t.out.document(data)
	}
	page, err := yamlOf(data, compactExamples)
	if err == nil {
		_, err = t.sh.Stdout.Write(page)
	}
	return err
}

// compactExamples sets each input and expectation on one line.
func compactExamples(root *yaml.Node) {
	examples := root.Content[len(root.Content)-1]
	for _, x := range examples.Content {
		for i := 1; i < len(x.Content); i += 2 {
			if x.Content[i].Kind != yaml.ScalarNode {
				x.Content[i].Style = yaml.FlowStyle
			}
		}
	}
}

// putExamples replaces the active examples of a method by those of a file. The file may name the method; the command
// line must then agree.
func (t *errand) putExamples() error {
	f, err := readExamples(t.sh, t.args[len(t.args)-1])
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	switch {
	case len(t.args) == 2:
		return exitWith(ExitUsage, errors.New("name a role and a method, or neither"))
	case len(t.args) == 1 && (f.Role == "" || f.Method == ""):
		return exitWith(ExitUsage, &examplefile.Error{Path: f.Path,
			Reason: "has no role and method; name them on the command line or in the file"})
	case len(t.args) == 1:
		t.args = []string{f.Role, f.Method}
	case f.Role != "" && f.Role != t.args[0], f.Method != "" && f.Method != t.args[1]:
		return exitWith(ExitUsage, &examplefile.Error{Path: f.Path,
			Reason: fmt.Sprintf("has the examples of %s.%s", f.Role, f.Method)})
	}
	data, err := t.c.Do(t.ctx, http.MethodPut, t.examplesPath(), map[string]any{"examples": examplesOf(f)})
	if err != nil {
		return placed(f, err)
	}
	return t.showExamples(data)
}

// readExamples reads a file of examples. "-" means standard input, in YAML or JSON.
func readExamples(sh Shell, path string) (*examplefile.File, error) {
	if path != "-" {
		return examplefile.Read(path)
	}
	data, err := readFileOrInput(sh, path)
	if err != nil {
		return nil, err
	}
	return examplefile.Parse("standard input", data)
}

func examplesOf(f *examplefile.File) []json.RawMessage {
	list := make([]json.RawMessage, 0, len(f.Examples))
	for _, x := range f.Examples {
		list = append(list, x.JSON)
	}
	return list
}

// placed converts the daemon's error about an example to one with the line in the file.
func placed(f *examplefile.File, err error) error {
	var no *client.Refusal
	if !errors.As(err, &no) {
		return err
	}
	for _, e := range no.Errors {
		rest, ok := strings.CutPrefix(e.Pointer, "/examples/")
		number, member, _ := strings.Cut(rest, "/")
		if i, atoi := strconv.Atoi(number); ok && atoi == nil && i >= 0 && i < len(f.Examples) {
			return exitWith(ExitUsage, &examplefile.Error{Path: f.Path, Line: f.Examples[i].Line,
				Reason: strings.TrimSpace(text.Clean(member+" "+e.Detail, 300))})
		}
	}
	return err
}

func runExamplesCommand(sh Shell, parent string) *cobra.Command {
	var p candidateFlags
	c := operatorCommand(sh, parent, operation{use: "run ROLE METHOD",
		short: "Run the examples of a method on its program, a generation or code", example: "tax net",
		exits: exitsOfExamples, least: 2, most: 2,
		run: func(t *errand) error {
			body, err := p.body(t.sh)
			if err != nil {
				return err
			}
			data, err := t.c.Do(t.ctx, http.MethodPost, t.examplesPath()+"/run", body)
			if err != nil {
				return err
			}
			return t.ranExamples(data)
		}})
	c.Example += "\n  recurgentd tools examples run tax net --code net.go"
	p.add(c)
	return c
}

// ranExamples prints a run of examples. It returns an error if one failed.
func (t *errand) ranExamples(data []byte) error {
	var run operator.ExampleRun
	if err := t.read("the run", data, &run); err != nil {
		return err
	}
	if !t.out.human() {
		if err := t.out.document(data); err != nil {
			return err
		}
	} else if err := t.exampleTable(run); err != nil {
		return err
	}
	if run.Failed > 0 {
		return exitWith(ExitFailed, fmt.Errorf("%d of %s failed", run.Failed, text.Plural(len(run.Results), "example")))
	}
	return nil
}

func (t *errand) exampleTable(run operator.ExampleRun) error {
	var all exampleFields
	if err := t.c.Get(t.ctx, t.examplesPath(), &all); err != nil {
		return err
	}
	by := map[string]agent.Example{}
	for _, x := range all.Examples {
		by[x.ID] = x
	}
	var rows [][]string
	for _, r := range run.Results {
		x := by[r.ID]
		rows = append(rows, []string{r.ID, r.Result, inputOf(x.Args, x.Kwargs), describeExpect(x.Expect),
			answerOf(r.Got, r.ErrorType)})
	}
	return t.table("ID RESULT INPUT EXPECT GOT", rows)
}

// candidateFlags select a program other than the serving one.
type candidateFlags struct{ code, generation string }

func (p *candidateFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&p.code, "code", "", "a program in a file, - for standard input")
	c.Flags().StringVar(&p.generation, "generation", "", "a kept generation, such as gen-1")
}

// body returns the part of a request that selects the program. It is empty for the serving one.
func (p *candidateFlags) body(sh Shell) (map[string]any, error) {
	switch {
	case p.code != "" && p.generation != "":
		return nil, exitWith(ExitUsage, errors.New("--code and --generation cannot be used together"))
	case p.generation != "":
		return map[string]any{"generation": p.generation}, nil
	case p.code != "":
		code, err := readFileOrInput(sh, p.code)
		if err != nil {
			return nil, exitWith(ExitUsage, err)
		}
		return map[string]any{"code": string(code)}, nil
	}
	return map[string]any{}, nil
}
