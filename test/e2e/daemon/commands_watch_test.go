package daemon

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/recurgentd/recurgentd/internal/cli/clitest"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

var portOfTest = regexp.MustCompile(`127\.0\.0\.1:\d+`)

func withoutPort(screen string) string { return portOfTest.ReplaceAllString(screen, "DAEMON") }

func watchOn(t *testing.T, s *stageDaemon, columns, rows int, args ...string) *rig.Terminal {
	t.Helper()
	return rig.OnTerminal(t, columns, rows, append(rig.Environment(t.TempDir()), "RECURGENT_URL="+s.URL),
		append([]string{"watch"}, args...)...)
}

// The screen: what came before, what comes, trees of delegation, what runs; filters by keys, a list, an end by q that
// leaves the terminal as it was.
func TestWatchScreen(t *testing.T) {
	t.Parallel()
	s := newStageDaemon(t)
	all := clitest.SomeCalls()
	s.end(all[:3]...)
	s.runs(clitest.Entry(4, 0, "invoice.total", `[{"price": 4, "quantity": 2.5}, {"price": 3, "quantity": 1}]`,
		"running", "", 0))
	w := watchOn(t, s, 100, 16)
	w.Shows("live", "invoice.total", "running", "3 calls, 1 error")
	s.end(all[3:6]...)
	w.Golden("watch-running.screen", withoutPort, "6 calls, 1 error")
	s.runs()
	s.end(all[6])
	w.Lacks("running")
	w.Golden("watch-tree.screen", withoutPort, "7 calls, 1 error")

	w.Press("t")
	w.Golden("watch-list.screen", withoutPort, "t trees")
	w.Press("t")
	w.Press("/role=units\r")
	w.Shows("role=units", "Esc all", "└ units.convert", "invoice.total") // with what leads to it
	w.Lacks("divide")
	w.Press("/\x15role=calculator status=error\r")
	w.Golden("watch-filter.screen", withoutPort, "role=calculator status=error  Esc",
		"calculator.divide(1, 0) → invalid_input: nothing can be divide")
	w.Press("/\x15trace=00000000000000000000000000000009\r")
	w.Lacks("calculator.add")
	w.Shows("movie finder.find", "weak: empty movies")
	w.Press("/\x15role=\"movie finder\"\r")
	w.Lacks("trace=")
	w.Shows(`role="movie finder"`, "movie finder.find")
	w.Press("/\x15colour=red\r")
	w.Shows(`"colour=red" is not one of role=`)
	w.Press("\x1b") // no more typing
	w.Lacks("colour=red")
	w.Press("\x1b") // no filter
	w.Shows("calculator.add(2, 3)", "invoice.total")
	w.Press("\x1b[Aw3.5")
	w.Golden("watch-judge.screen", withoutPort, "is wrong. Right is (empty: not known): 3.5")
	w.Press("\x1b")
	w.Lacks("is wrong")
	w.Press("q")
	w.Ends(0)
}

// The filters as flags, and scrolling.
func TestWatchFiltersAndScrolls(t *testing.T) {
	t.Parallel()
	s := newStageDaemon(t)
	s.end(clitest.SomeCalls()...)
	for n := 10; n < 40; n++ {
		s.end(clitest.Entry(n, 0, "echo.echo", fmt.Sprint(n), "ok", "persisted", 1))
	}
	w := watchOn(t, s, 90, 10, "--role", "echo", "--method", "echo", "--status", "ok", "--trace", "0000", "--last",
		"200")
	w.Shows("echo.echo(39)", "echo.echo(33)")
	w.Lacks("echo.echo(32)")
	w.Press("\x1b[A")
	w.Shows("line 30 of 30, End follows  w wrong", ">echo.echo(39)")
	w.Press(strings.Repeat("\x1b[A", 7))
	w.Shows(">echo.echo(32)", "line 23 of 30")
	s.end(clitest.Entry(41, 0, "echo.echo", "41", "ok", "persisted", 1)) // what comes does not move what is read
	w.Shows("line 23 of 31", "echo.echo(32)")
	w.Press("\x1b[H")
	w.Shows("echo.echo(10)", "line 1 of 31")
	w.Press("\x1b[6~")
	w.Shows("line 7 of 31")
	w.Press("\x1b[F")
	w.Shows("echo.echo(41)")
	w.Press("\x03")
	w.Ends(0)
}

// A screen of any size is drawn, down to one cell, and the next larger one is whole again.
func TestWatchResizes(t *testing.T) {
	t.Parallel()
	s := newStageDaemon(t)
	s.end(clitest.SomeCalls()...)
	w := watchOn(t, s, 100, 12)
	w.Shows("invoice.total", "TOOK")
	w.Resize(44, 6)
	w.Shows("recurgentd watch", "TIME")
	w.Resize(1, 1)
	w.WaitFor("one cell", func(screen string) bool { return len([]rune(screen)) == 1 })
	w.Resize(120, 20)
	w.Shows("calculator.divide(1, 0) → invalid_input: nothing can be divided by zero", "invoice.total", "q end")
	w.Press("q")
	w.Ends(0)
}
