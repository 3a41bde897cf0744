package gotest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A replacement is what stands for a name of another package, and the part of the prelude that declares it.
type replacement struct{ text, part string }

// replacements says what becomes of names of packages. What prints goes to the program's buffer. What ends the process panics: a test
// that gets there has failed. Collecting and scheduling may happen at any time, so asking for them does nothing.
func replacements() map[string]replacement {
	return map[string]replacement{
		"fmt.Print":                        {"gotestPrint", "print"},
		"fmt.Println":                      {"gotestPrintln", "print"},
		"fmt.Printf":                       {"gotestPrintf", "print"},
		"log.Print":                        {"gotestPrint", "print"},
		"log.Println":                      {"gotestPrintln", "print"},
		"log.Printf":                       {"gotestPrintf", "print"},
		"log.Fatal":                        {"gotestFatal", "fatal"},
		"log.Fatalln":                      {"gotestFatal", "fatal"},
		"log.Fatalf":                       {"gotestFatalf", "fatal"},
		"log.Panic":                        {"gotestFatal", "fatal"},
		"log.Panicln":                      {"gotestFatal", "fatal"},
		"log.Panicf":                       {"gotestFatalf", "fatal"},
		"os.Exit":                          {"gotestExit", "exit"},
		"os.Args":                          {`[]string{"a.out"}`, ""},
		"os.Getenv":                        {"gotestGetenv", "getenv"},
		"os.Stdout":                        {"(&gotestOut)", "writer"},
		"os.Stderr":                        {"(&gotestOut)", "writer"},
		"runtime.GC":                       {"gotestNothing", "nothing"},
		"runtime.Gosched":                  {"gotestNothing", "nothing"},
		"runtime.Breakpoint":               {"gotestNothing", "nothing"},
		"runtime.KeepAlive":                {"gotestKeep", "keep"},
		"runtime.GOMAXPROCS":               {"gotestSetting", "setting"},
		"runtime/debug.SetGCPercent":       {"gotestSetting", "setting"},
		"sync.Mutex":                       {"gotestMutex", "mutex"},
		"sync.Once":                        {"gotestOnce", "once"},
		"sync/atomic.AddInt32":             {"gotestAdd", "add"},
		"sync/atomic.AddInt64":             {"gotestAdd", "add"},
		"sync/atomic.AddUint32":            {"gotestAdd", "add"},
		"sync/atomic.AddUint64":            {"gotestAdd", "add"},
		"sync/atomic.LoadInt32":            {"gotestLoad", "load"},
		"sync/atomic.LoadInt64":            {"gotestLoad", "load"},
		"sync/atomic.SwapUint32":           {"gotestSwap", "swap"},
		"sync/atomic.CompareAndSwapUint32": {"gotestCompareAndSwap", "compareAndSwap"},
		"runtime.Error":                    {"gotestRuntimeError", "error"},
		"runtime.Compiler":                 {`"gc"`, ""},
		"runtime.GOOS":                     {`"linux"`, ""},
		"runtime.GOARCH":                   {`"amd64"`, ""},
	}
}

// parts are the declarations that the replacements need.
func parts() map[string]string {
	return map[string]string{
		"writer": `
type gotestWriter struct{ text []byte }

func (w *gotestWriter) Write(p []byte) (int, error) {
	w.text = append(w.text, p...)
	return len(p), nil
}

func (w *gotestWriter) WriteString(s string) (int, error) { return w.Write([]byte(s)) }

var gotestOut gotestWriter
`,
		"print": `
func gotestPrint(a ...any) (int, error)                 { return fmt.Fprint(&gotestOut, a...) }
func gotestPrintln(a ...any) (int, error)               { return fmt.Fprintln(&gotestOut, a...) }
func gotestPrintf(format string, a ...any) (int, error) { return fmt.Fprintf(&gotestOut, format, a...) }
`,
		"builtin": `
func gotestBuiltinPrint(a ...any) {
	for _, x := range a {
		fmt.Fprint(&gotestOut, x)
	}
}

func gotestBuiltinPrintln(a ...any) { fmt.Fprintln(&gotestOut, a...) }
`,
		"fatal": `
func gotestFatal(a ...any)                 { panic(fmt.Sprint(a...)) }
func gotestFatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
`,
		"exit": `
type gotestEnd int

func (code gotestEnd) Error() string { return fmt.Sprintf("exit status %d, printed %s", int(code), gotestOut.text) }

func gotestExit(code int) { panic(gotestEnd(code)) }

func gotestUntilExit() {
	defer func() {
		r := recover()
		if code, ok := r.(gotestEnd); r != nil && (!ok || code != 0) {
			panic(r)
		}
	}()
	gotestBegin()
}
`,
		"nothing": `
func gotestNothing() {}
`,
		"keep": `
func gotestKeep(any) {}
`,
		"setting": `
func gotestSetting(int) int { return 1 }
`,
		"getenv": `
func gotestGetenv(string) string { return "" }
`,
		"mutex": `
type gotestMutex struct{ locked bool }

func (m *gotestMutex) Lock() {
	if m.locked {
		panic("deadlock")
	}
	m.locked = true
}

func (m *gotestMutex) Unlock() {
	if !m.locked {
		panic("unlock of unlocked mutex")
	}
	m.locked = false
}
`,
		"once": `
type gotestOnce struct{ done bool }

func (o *gotestOnce) Do(f func()) {
	if !o.done {
		defer func() { o.done = true }()
		f()
	}
}
`,
		"add": `
func gotestAdd[T int32 | int64 | uint32 | uint64](p *T, delta T) T {
	*p += delta
	return *p
}
`,
		"load": `
func gotestLoad[T int32 | int64](p *T) T { return *p }
`,
		"swap": `
func gotestSwap[T uint32](p *T, x T) T {
	old := *p
	*p = x
	return old
}
`,
		"compareAndSwap": `
func gotestCompareAndSwap[T uint32](p *T, old, x T) bool {
	if *p != old {
		return false
	}
	*p = x
	return true
}
`,
		"error": `
type gotestRuntimeError interface {
	error
	RuntimeError()
}
`,
	}
}

func (a *adapter) needsFmt() bool {
	for part := range a.parts {
		if strings.Contains(parts()[part], "fmt.") {
			return true
		}
	}
	return false
}

// prelude declares what the program needs beside its own text.
func (a *adapter) prelude() string {
	var b strings.Builder
	b.WriteString("\n")
	printed := `""`
	for part := range a.parts {
		if strings.Contains(parts()[part], "gotestOut") {
			a.parts["writer"] = true
			printed = "string(gotestOut.text)"
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.parts)) {
		b.WriteString(parts()[name])
	}
	begin := "gotestBegin"
	if a.parts["exit"] {
		begin = "gotestUntilExit"
	}
	b.WriteString("\nfunc gotestBegin() {\n")
	for i := range a.inits {
		fmt.Fprintf(&b, "\tgotestInit%d()\n", i+1)
	}
	fmt.Fprintf(&b, "\tmain()\n}\n\nfunc Run(call *recurgent.Call) (interface{}, error) {\n\t%s()\n\treturn %s, nil\n}\n", begin, printed)
	text := b.String()
	if a.fmt != "fmt" {
		text = strings.NewReplacer("fmt.F", a.fmt+".F", "fmt.S", a.fmt+".S").Replace(text)
	}
	return text
}
