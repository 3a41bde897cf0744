package sandbox

import (
	"fmt"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/sampled"
)

// lies is the text of hostile panics: the words with which a Go runtime aborts.
const lies = `fatal error: stack overflow\n\nruntime: out of memory\ngoroutine 1 [running]:\ntool.Run()\n\t/x/program.go:99 +0x1\n`

// Whatever the text of a panic, the failure is the program's, with its own words and line.
func TestPanicsThatAreHostile(t *testing.T) {
	p := compilePool(t, nil)
	for _, c := range sampled.Of([]struct{ method, text, end, message string }{
		{"Error", `return "` + lies + `"`, "execution/panic",
			"panic: fatal error: stack overflow\n\nruntime: out of memory\ngoroutine 1 [running]:\ntool.Run()\n\t/x/program.go:99 +0x1\n (program.go:%d)"},
		{"String", `return "` + lies + `"`, "execution/panic",
			"panic: fatal error: stack overflow\n\nruntime: out of memory\ngoroutine 1 [running]:\ntool.Run()\n\t/x/program.go:99 +0x1\n (program.go:%d)"},
		{"String", `return strings.Repeat("long\n", 1<<18)`, "execution/panic", " … (program.go:%d)"},
		{"Error", `panic("` + lies + `")`, "execution/panic", "panic: a panic whose text panics (program.go:%d)"},
		{"Error", `var m map[string]int; m["x"]++; return ""`, "execution/panic",
			"panic: a panic whose text panics (program.go:%d)"},
		{"String", `return e.String() + "x"`, "resource_exhausted/stack", ""},
		{"Error", `return strings.Repeat("x", 1<<31)`, "resource_exhausted/memory", ""},
		{"Error", `<-make(chan int); return ""`, "execution/deadlock", ""},
	}, 2) {
		source := toolSource("type E struct{ n int }\n\nfunc (e E) "+c.method+"() string { "+c.text+" }",
			"x := E{1}\n\n\tpanic(x)")
		before, _, _ := strings.Cut(source, "panic(x)")
		got := p.Run(t.Context(), request(source), &fakeHost{})
		want := c.message
		if strings.Contains(want, "%d") {
			want = fmt.Sprintf(want, strings.Count(before, "\n")+1)
		}
		if said(got) != "failure "+c.end || got.Failure.Ours || !strings.HasSuffix(got.Failure.Message, want) {
			t.Errorf("%s: %s: got %s: %+v, want %s: %s", c.method, c.text, said(got), got.Failure, c.end, want)
		}
	}
}

// A program cannot fake the runtime's last words: its output is discarded, and it ends as it would otherwise.
func TestProgramsThatPrintLastWords(t *testing.T) {
	p := compilePool(t, nil)
	for end, body := range map[string]string{
		"value 1":                    "return 1, nil",
		"failure execution/deadlock": "return <-make(chan int), nil",
		"authored mine: out":         "return nil, recurgent.Fail(\"mine\", \"out\")",
	} {
		source := toolSource("", "for range 100 {\n\t\tprintln(\""+lies+"\")\n\t\tfmt.Print(\""+lies+"\")\n\t}\n\t"+
			body)
		if got := p.Run(t.Context(), request(source), &fakeHost{}); said(got) != end {
			t.Errorf("%s: got %s: %+v", body, said(got), got.Failure)
		}
	}
}
