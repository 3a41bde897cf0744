package diff

//lint:file-ignore SA1019 it reads the toolchain's own archives and tree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/gotest"
	"github.com/recurgentd/recurgentd/internal/runtime/gate/diff/native"
)

// TestMakeGoProject makes the bundle when asked to.
func TestMakeGoProject(t *testing.T) {
	names, version := goProjectTests(t)
	if !*update {
		return
	}
	if len(names) == 0 {
		t.Fatal("this Go toolchain comes without its tests; one from go.dev/dl has them")
	}
	g, err := gate.New(gate.Options{Deadline: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	m := &maker{t: t, gate: g, root: filepath.Join(runtime.GOROOT(), "test"),
		bundle: &gotest.Bundle{Go: version, Programs: map[string]string{}, Left: map[string]string{}}}
	for _, name := range names {
		m.add(name)
	}
	m.runNatively()
	if err := m.bundle.Write(goTests); err != nil {
		t.Fatal(err)
	}
	m.writePage()
	t.Logf("%d run, %d are left out", len(m.bundle.Runs()), len(m.bundle.Left))
}

// A maker makes the bundle.
type maker struct {
	t      *testing.T
	gate   *gate.Gate
	root   string
	bundle *gotest.Bundle
}

// add takes one test into the bundle.
func (m *maker) add(name string) {
	data, err := os.ReadFile(filepath.Join(m.root, name))
	if err != nil {
		m.t.Fatal(err)
	}
	text, why := gotest.Adapted(name, string(data), func(args []string) (string, error) {
		cmd := exec.Command("go", append([]string{"run", name}, args...)...)
		cmd.Dir = m.root
		cmd.Env = append(os.Environ(), "GOFLAGS=")
		out, err := cmd.Output()
		return string(out), err
	})
	if why != "" {
		m.bundle.Left[name] = why
		return
	}
	m.bundle.Programs[name] = text
	if why := refusalOf(m.gate, text); why != "" {
		m.bundle.Left[name] = strings.Join(strings.Fields(why), " ")
	}
}

// leave leaves out a program that is no test of the engines.
func (m *maker) leave(name, why string) {
	m.t.Logf("%s: %s", name, why)
	m.bundle.Left[name] = strings.Join(strings.Fields(why), " ")
	delete(m.bundle.Programs, name)
}

var programNumber = regexp.MustCompile(`(?m)^p(\d+)/program\.go`)

// runNatively leaves out what does not end well natively, once adapted, or ends otherwise each time.
func (m *maker) runNatively() {
	for {
		names := m.bundle.Runs()
		corpus := make([]entry, len(names))
		for i, name := range names {
			corpus[i] = entry{name: name, source: m.bundle.Programs[name], calls: []string{"[]"}}
		}
		binary, err := buildNatively(m.t.TempDir(), corpus)
		if err == nil {
			m.judge(names, binary)
			return
		}
		bad := programNumber.FindAllStringSubmatch(err.Error(), -1)
		if len(bad) == 0 {
			m.t.Fatal(err)
		}
		m.t.Logf("%.3000s", err)
		for _, b := range bad {
			i, _ := strconv.Atoi(b[1])
			m.leave(names[i], "does not compile natively once it is a program here")
		}
	}
}

func (m *maker) judge(names []string, binary string) {
	var runs [2][]result
	for i := range runs {
		var err error
		if runs[i], err = native.RunJobs(binary, len(names)); err != nil {
			m.t.Fatal(err)
		}
	}
	for i, name := range names {
		first, second := runs[0][i], runs[1][i]
		printed, _ := os.ReadFile(filepath.Join(m.root, strings.TrimSuffix(name, ".go")+".out"))
		switch {
		case first.Name == native.Dies || first.Panic != "":
			m.leave(name, fmt.Sprintf("fails natively once it is a program here; %.200s", first.Panic))
		case string(first.Value) != string(second.Value):
			m.leave(name, "prints something else each time")
		case !sameJSON(first.Value, quote(string(printed))) && !gotest.PrintsOtherwise(name):
			m.leave(name, fmt.Sprintf("prints something else natively once it is a program here; %.200s", first.Value))
		}
	}
}

var pageTable = regexp.MustCompile(`(?s)\| of the .*\|\n`)

// writePage puts the counts into the page about the tests.
func (m *maker) writePage() {
	page, err := os.ReadFile(goTestsPage)
	if err != nil {
		m.t.Fatal(err)
	}
	text := pageTable.ReplaceAllLiteralString(string(page), m.bundle.Table())
	if err := os.WriteFile(goTestsPage, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}
