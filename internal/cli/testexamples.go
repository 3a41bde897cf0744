package cli

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/examplefile"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// testCommand returns the command that runs example files against a daemon.
func testCommand(sh Shell) *cobra.Command {
	var junit string
	c := operatorCommand(sh, "recurgentd", operation{use: "test PATH...",
		short: "Run files of examples against a daemon", least: 1, most: 1000,
		long: `Run files of examples, and folders of them with what lies below, against the programs that a daemon serves: one
line for each example, with its place. Files are those of recurgentd tools examples, and name their role and
method. Nothing is kept or counted at the daemon, and no model is asked. An example is skipped where it shows
nothing now: a source cannot be reached.`,
		exits: `Exit status: 0 when no example failed, 1 when one failed or its method has no program, 2 for a wrong command line
or an invalid file, 3 when no daemon answers or it refuses the request.`,
		example: "examples/",
		run:     func(t *errand) error { return t.testFiles(junit) }})
	c.Example += "\n  recurgentd test examples/ --junit report.xml"
	c.Flags().StringVar(&junit, "junit", "", "also write a report in the XML of JUnit to this file")
	return c
}

// A tested is the result of one example in a file.
type tested struct {
	File       string            `json:"file"`
	Line       int               `json:"line"`
	Role       string            `json:"role"`
	Method     string            `json:"method"`
	Args       []json.RawMessage `json:"args"`
	Kwargs     json.RawMessage   `json:"kwargs"`
	Expect     agent.Expectation `json:"expect"`
	Note       string            `json:"note,omitempty"`
	Result     string            `json:"result"` // passed, failed, skipped
	Got        json.RawMessage   `json:"got"`
	ErrorType  string            `json:"error_type"`
	Reason     string            `json:"reason,omitempty"` // the reason why it was not run
	DurationMs float64           `json:"duration_ms"`
}

func (x *tested) name() string {
	return text.Clean(x.Role, 40) + "." + text.Clean(x.Method, 40) + inputOf(x.Args, x.Kwargs)
}

// detail describes the result.
func (x *tested) detail() string {
	got := text.Clean(answerOf(x.Got, x.ErrorType), 80)
	switch {
	case x.Reason != "":
		return text.Clean(x.Reason, 200)
	case x.Result == "passed":
		return got
	case x.Result == "skipped":
		return "shows nothing now"
	}
	words := "got " + got + ", want " + text.Clean(describeExpect(x.Expect), 80)
	if x.Note != "" {
		words += " (" + text.Clean(x.Note, 80) + ")"
	}
	return words
}

// testFiles runs the files, prints each result at once, and writes the JUnit report last. It returns an error if an
// example failed.
func (t *errand) testFiles(junit string) error {
	files, err := t.readFiles()
	if err != nil {
		return err
	}
	var all []tested
	count := map[string]int{}
	for _, f := range files {
		results, err := t.testFile(f)
		if err != nil {
			return err
		}
		for i := range results {
			count[results[i].Result]++
			if err := t.printTested(&results[i]); err != nil {
				return err
			}
		}
		all = append(all, results...)
	}
	if junit != "" {
		if err := writeJUnit(junit, all); err != nil {
			return exitWith(ExitUsage, err)
		}
	}
	if t.out.human() {
		if err := t.out.line("%d passed, %d failed, %d skipped", count["passed"], count["failed"],
			count["skipped"]); err != nil {
			return err
		}
	}
	if count["failed"] > 0 {
		return exitWith(ExitFailed, fmt.Errorf("%d of %s failed", count["failed"], text.Plural(len(all), "example")))
	}
	return nil
}

// readFiles reads all files before any is run. It reports each invalid one.
func (t *errand) readFiles() ([]*examplefile.File, error) {
	paths, err := examplefile.Find(t.args...)
	if err != nil {
		return nil, exitWith(ExitUsage, err)
	}
	var files []*examplefile.File
	var bad []error
	for _, path := range paths {
		f, err := examplefile.Read(path)
		if err == nil && (f.Role == "" || f.Method == "") {
			err = &examplefile.Error{Path: path, Line: 1, Reason: "must name a role and a method"}
		}
		if err != nil {
			bad = append(bad, err)
			continue
		}
		files = append(files, f)
	}
	switch {
	case len(bad) > 0:
		for _, err := range bad {
			fmt.Fprintln(t.sh.Stderr, text.Plain(text.OneLine(err.Error())))
		}
		return nil, exitWith(ExitUsage, errors.New(text.Plural(len(bad), "file")+" with errors; nothing was run"))
	case len(files) == 0:
		return nil, exitWith(ExitUsage, errors.New("there are no example files: their names end in .yaml, .yml or "+
			".json"))
	}
	return files, nil
}

// testFile runs the examples of one file. If the method has no program, all of them fail.
func (t *errand) testFile(f *examplefile.File) ([]tested, error) {
	results := make([]tested, len(f.Examples))
	for i, x := range f.Examples {
		var e agent.Example
		if err := json.Unmarshal(x.JSON, &e); err != nil {
			return nil, exitWith(ExitUsage, &examplefile.Error{Path: f.Path, Line: x.Line, Reason: err.Error()})
		}
		results[i] = tested{File: f.Path, Line: x.Line, Role: f.Role, Method: f.Method, Args: e.Args, Kwargs: e.Kwargs,
			Expect: e.Expect, Note: e.Note, Result: "failed"}
	}
	if len(results) == 0 {
		return nil, nil
	}
	var run operator.ExampleRun
	err := t.c.JSON(t.ctx, http.MethodPost, client.MethodPath(f.Role, f.Method)+"/examples/run",
		map[string]any{"examples": examplesOf(f)}, &run)
	var no *client.Refusal
	if errors.As(err, &no) && (no.Code == "not_found" || no.Code == "no_program") {
		for i := range results {
			results[i].Reason = "no program of this method is kept yet"
		}
		return results, nil
	}
	if err != nil {
		return nil, placed(f, err)
	}
	if len(run.Results) != len(results) {
		return nil, errors.New("the reply of the run is not in recurgentd's format")
	}
	for i, r := range run.Results {
		x := &results[i]
		x.Result, x.Got, x.ErrorType, x.DurationMs = r.Result, r.Got, r.ErrorType, r.DurationMs
	}
	return results, nil
}

func (t *errand) printTested(x *tested) error {
	if !t.out.human() {
		return t.out.value(x)
	}
	word, style := "ok  ", text.Good
	switch x.Result {
	case "failed":
		word, style = "FAIL", text.Bad
	case "skipped":
		word, style = "skip", text.Warn
	}
	return t.out.line("%s  %s: %s  %s:%d", t.out.colours().Paint(style, word), x.name(), x.detail(), text.Plain(x.File),
		x.Line)
}

// writeJUnit writes a JUnit report for build servers.
func writeJUnit(path string, all []tested) error {
	data, err := junitReport(all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

// Elements of a JUnit report that build servers read.
type (
	junitSuites struct {
		XMLName xml.Name     `xml:"testsuites"`
		Suites  []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string     `xml:"classname,attr"`
		Name    string     `xml:"name,attr"`
		File    string     `xml:"file,attr"`
		Line    int        `xml:"line,attr"`
		Seconds string     `xml:"time,attr"`
		Failure *junitText `xml:"failure"`
		Skipped *junitText `xml:"skipped"`
	}
	junitText struct {
		Message string `xml:"message,attr"`
	}
)

// junitReport returns a report with one suite per file.
func junitReport(all []tested) ([]byte, error) {
	var report junitSuites
	for i := range all {
		x := &all[i]
		if i == 0 || all[i-1].File != x.File {
			report.Suites = append(report.Suites, junitSuite{Name: x.File})
		}
		s := &report.Suites[len(report.Suites)-1]
		s.Tests++
		c := junitCase{Class: x.Role + "." + x.Method, Name: x.name(), File: x.File, Line: x.Line,
			Seconds: fmt.Sprintf("%.6f", x.DurationMs/1000)}
		switch x.Result {
		case "failed":
			s.Failures++
			c.Failure = &junitText{x.detail()}
		case "skipped":
			s.Skipped++
			c.Skipped = &junitText{x.detail()}
		}
		s.Cases = append(s.Cases, c)
	}
	data, err := xml.MarshalIndent(report, "", "  ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
