package watch

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/recurgentd/recurgentd/internal/cli/clitest"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

func drawn(f *forest, want Filter, flat bool) string {
	var b strings.Builder
	for _, t := range f.lines(want, flat) {
		mark := ""
		if !t.match {
			mark = " (leads to one)"
		}
		fmt.Fprintf(&b, "%s%s %s%s\n", t.lead, t.call.Text, t.call.Status, mark)
	}
	return b.String()
}

// The calls of a tree and the events of running ones may arrive in any order: the same tree results.
func TestForestOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	var calls []Call
	for _, e := range clitest.SomeCalls() {
		calls = append(calls, CallFrom(&e))
	}
	want := ""
	for round := range 200 {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		f := newForest()
		for _, i := range random.Perm(len(calls)) {
			if random.IntN(2) == 0 {
				w := calls[random.IntN(len(calls))]
				w.Status = Running
				f.running([]Call{w})
			}
			f.add(calls[i])
		}
		f.running(nil)
		got := drawn(f, Filter{}, false)
		if round == 0 {
			want = got
		}
		if got != want || len(f.byID) != len(calls) {
			t.Fatalf("round %d:\n%s\nwant\n%s", round, got, want)
		}
	}
	if !strings.Contains(want,
		"├ calculator.multiply(4, 2.5) ok\n└ calculator.add(10, 3) ok\n  └ units.convert(3, \"kg\") ok\n") {
		t.Errorf("the tree is\n%s", want)
	}
}

// A running call that is no longer reported is gone. Its end, when reported, replaces it.
func TestForestForgetsWhatWasLost(t *testing.T) {
	t.Parallel()
	f := newForest()
	parent, child, alone := Call{ID: "a", Text: "parent", Status: Running},
		Call{ID: "b", Parent: "a", Text: "child", Status: "ok"}, Call{ID: "c", Text: "alone", Status: Running}
	f.running([]Call{parent, alone})
	f.add(child)
	f.running(nil)
	if got := drawn(f, Filter{}, false); got != "parent gone\n└ child ok\n" {
		t.Errorf("got\n%s", got)
	}
	parent.Status = "error"
	f.add(parent)
	if got := drawn(f, Filter{Status: "ok"}, false); got != "parent error (leads to one)\n└ child ok\n" {
		t.Errorf("got\n%s", got)
	}
	if got := drawn(f, Filter{Status: "ok"}, true); got != "child ok\n" {
		t.Errorf("as a list:\n%s", got)
	}
}

// A faulty daemon (calls below themselves, cycles, endless nesting) causes neither an endless loop nor unbounded
// memory.
func TestForestWithstandsLies(t *testing.T) {
	t.Parallel()
	f := newForest()
	f.add(Call{ID: "self", Parent: "self", Text: "self"})
	f.add(Call{ID: "x", Parent: "y", Text: "x"})
	f.add(Call{ID: "y", Parent: "x", Text: "y"})
	for i := range 3 * maxWatched {
		f.add(Call{ID: fmt.Sprintf("d%06d", i), Parent: fmt.Sprintf("d%06d", i+1), Text: "deep"})
	}
	for i := range 3 * maxWatched {
		f.add(Call{ID: fmt.Sprintf("w%06d", i), Parent: "wide", Text: "wide"})
	}
	if len(f.byID) > maxWatched+1 {
		t.Errorf("%d calls are kept, want at most %d", len(f.byID), maxWatched)
	}
	if n := len(f.lines(Filter{}, false)); n == 0 || n > maxWatched+1 {
		t.Errorf("%d lines", n)
	}
}

// Every screen fits its terminal, whatever its size, its calls and the input.
func FuzzScreenFits(f *testing.F) {
	f.Add(80, 24, "text", "role=x")
	f.Add(1, 1, "漢字", "\"")
	f.Add(9, 3, "\x1b[2J", "status=running")
	f.Fuzz(func(t *testing.T, columns, rows int, said, typed string) {
		columns, rows = columns&255, rows&63
		s := &screen{url: said, colours: true, calls: newForest(), follow: true, want: Filter{Role: said}}
		for i, e := range clitest.SomeCalls() {
			if e.OutcomeErrorMessage = said; i%2 == 0 {
				e.Role, e.Method, e.OutcomeStatus = said, said, said
			}
			s.calls.add(CallFrom(&e))
		}
		s.Update(tea.WindowSizeMsg{Width: columns, Height: rows})
		for _, key := range []string{"/", typed, "\r"} {
			s.Update(tea.KeyPressMsg(tea.Key{Text: key, Code: []rune(key + " ")[0]}))
			checkFits(t, s.View().Content, columns, rows)
		}
		failed := text.Clean(said, 200) // like the text of an error
		s.want, s.prompt, s.lost = Filter{}, &prompt{label: "filter: ", typed: typed, wrong: failed}, failed
		checkFits(t, s.View().Content, columns, rows)
		if want, err := parseFilter(typed); err == nil && !strings.Contains(typed, `"`) {
			if again, err := parseFilter(want.String()); err != nil || again != want {
				t.Errorf("%q is read as %+v, its own form %q as %+v (%v)", typed, want, want.String(), again, err)
			}
		}
	})
}

// Quotation marks keep spaces together and are not part of a value.
func TestFilters(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]Filter{`"movie finder"`: {Role: "movie finder"},
		`role="movie finder" status=ok`: {Role: "movie finder", Status: "ok"}, `calculator`: {Role: "calculator"}} {
		if got, err := parseFilter(typed); err != nil || got != want {
			t.Errorf("%s: %+v, %v", typed, got, err)
		}
	}
}

// Arguments are shown as they are.
func TestSpacesOfArguments(t *testing.T) {
	t.Parallel()
	e := clitest.Entry(1, 0, "text.initials", `"Ada  Lovelace"`, "ok", "persisted", 1)
	if got := CallFrom(&e).Text; got != `text.initials("Ada  Lovelace")` {
		t.Errorf("got %s", got)
	}
}

func checkFits(t *testing.T, content string, columns, rows int) {
	t.Helper()
	lines := strings.Split(content, "\n")
	if len(lines) > max(1, rows) {
		t.Errorf("%d lines in %d rows", len(lines), rows)
	}
	for _, line := range lines {
		if w := ansi.StringWidth(line); w > columns {
			t.Errorf("a line of %d in %d columns: %q", w, columns, line)
		}
	}
}
