package worker

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/report"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
)

// firstEngine is how many bytes creating the first engine of the process allocates.
var firstEngine uint64

func TestMain(m *testing.M) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := NewEngine(report.EngineGo); err != nil {
		panic(err)
	}
	runtime.ReadMemStats(&after)
	firstEngine = after.TotalAlloc - before.TotalAlloc
	os.Exit(m.Run())
}

// A runner starts without the table of lines that the reader of export data builds otherwise.
func TestNoTableOfLines(t *testing.T) {
	const table = 64 << 10 * 8
	if firstEngine > table*3/4 {
		t.Errorf("an engine takes %d bytes; the table alone takes %d", firstEngine, table)
	}
	t.Logf("%d bytes", firstEngine)
}

const head = "package tool\n\nimport \"recurgent\"\n\n"

// Yaegi runs a plain program, and a panic of the program ends the run with its value.
func TestPlainProgram(t *testing.T) {
	t.Parallel()
	e, err := NewEngine(report.EngineYaegi)
	if err != nil {
		t.Fatal(err)
	}
	facts, refusal, err := e.Load(head +
		"func Run(call *recurgent.Call) (any, error) {\n\tlist := []int{3, 4}\n\treturn list[len(call.Args)], nil\n}\n")
	if err != nil || refusal != nil || !strings.HasPrefix(facts.Engine, "yaegi v") {
		t.Fatalf("got %+v, %+v, %v", facts, refusal, err)
	}
	for args, want := range map[int]any{0: 3, 1: 4, 2: nil} {
		call, err := recurgent.New(recurgent.Input{Args: slices.Repeat([]json.RawMessage{[]byte("1")}, args)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		value, err, panicked := e.Run(call, time.Unix(1790000000, 0), 1)
		if value != want || err != nil || (panicked != nil) != (want == nil) {
			t.Errorf("%d arguments: got %v, %v, %+v", args, value, err, panicked)
		}
	}
}

// A program that yaegi cannot run is refused with the remedy, and so is every program if runners only check. Under each
// setting the gate writes a text to compile.
func TestNeedsCompiler(t *testing.T) {
	t.Parallel()
	const plain, other = head + "func Run(call *recurgent.Call) (any, error) { return 1, nil }\n",
		head + "func Run(call *recurgent.Call) (any, error) { f := func() int { return 1 }; return f(), nil }\n"
	for setting, refused := range map[string][]string{report.EngineYaegi: {other}, report.EngineAuto: {other},
		report.EngineGo: {plain, other}} {
		for _, source := range refused {
			e, err := NewEngine(setting)
			if err != nil {
				t.Fatal(err)
			}
			_, refusal, err := e.Load(source)
			if err != nil || refusal == nil || refusal.Type != report.Unsupported ||
				!strings.Contains(refusal.Message, "make build") || !strings.Contains(refusal.Hint, runtime.Version()) {
				t.Errorf("%s: got %+v, %v", setting, refusal, err)
			}
			if text, _, refusal, err := e.(*gateEngine).Check(
				source); err != nil || refusal != nil || !strings.Contains(text, "RecurgentNativeProgram") {
				t.Errorf("%s: got %q, %+v, %v", setting, text, refusal, err)
			}
		}
	}
}
