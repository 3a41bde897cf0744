//go:build ops

package daemon

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/recurgentd/recurgentd/test/e2e/rig"
)

// A cutter passes connections on to a daemon. Those that send the text cut are handed over at cuts once all that they
// sent has reached the daemon; whoever receives one closes it.
type cutter struct {
	net.Listener
	daemon, cut string
	cuts        chan net.Conn
	passed      atomic.Int32 // connections
}

func newCutter(t *testing.T, d *rig.Daemon, cut string) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cutter{Listener: l, daemon: strings.TrimPrefix(d.URL, "http://"), cut: cut, cuts: make(chan net.Conn)}
	go func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			c.passed.Add(1)
			go c.pass(from)
		}
	}()
	return c
}

func (c *cutter) pass(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.daemon)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(from, to) // ends with either connection
		_ = from.Close()
	}()
	var sent []byte
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
		if sent = append(sent, buf[:n]...); bytes.Contains(sent, []byte(c.cut)) {
			sent = nil
			c.cuts <- from
		}
	}
}

// next is the next connection that is handed over, where the client has not ended before.
func (c *cutter) next(t *testing.T, ended <-chan string) net.Conn {
	t.Helper()
	select {
	case conn := <-c.cuts:
		return conn
	case out := <-ended:
		t.Fatalf("the client ended early: %s", out)
		return nil
	}
}

// programs make one call of shop.slow and print its value, behind the events where they stream.
var programs = map[string][]string{
	"python": {"python3", "-c", "import recurgent; print(recurgent.role('shop').slow(2, 3))"},
	"python, stream": {"python3", "-c",
		"import recurgent; s = recurgent.role('shop').slow.stream(2, 3); print(*(e.type for e in s), s.reply().value)"},
	"go":         {"go", "run", "-C", "../../test/e2e/daemon/testdata/lost", "."},
	"go, stream": {"go", "run", "-C", "../../test/e2e/daemon/testdata/lost", ".", "-stream"},
}

// inOrder is what the streams print: each event once at most.
var inOrder = regexp.MustCompile(
	`^(call\.selected )?(call\.forging )?(call\.gate )?(call\.running )?call\.finished 5 <nil>$`)

// A call whose connection breaks goes on, and its client gets the reply: the program ran once. A stream that breaks
// goes on without repetitions.
func TestOpsLostConnection(t *testing.T) {
	for name, command := range programs {
		t.Run(name, func(t *testing.T) {
			language, _, streams := strings.Cut(name, ", ")
			cut, want := `"slow"`, regexp.MustCompile("^5 <nil>$")
			if streams {
				cut, want = "/events HTTP/1.1", inOrder
			}
			m := rig.NewModel(t, rig.Script{"shop.slow": {rig.Held(rig.ProgAdd)}})
			d := rig.Start(t, m)
			c := newCutter(t, d, cut)
			printed := make(chan string)
			go func() {
				out, err := try(t, "http://"+c.Addr().String(), "clients/"+language, command...)
				printed <- fmt.Sprint(strings.TrimSpace(out), " ", err)
			}()
			first := c.next(t, printed)
			rig.Until(t, "the call runs", func() bool { return len(d.List("/v1/calls?status=running")) == 1 })
			_ = first.Close()
			c.next(t, printed) // the client asks again, while the call runs
			m.Release()
			for out := ""; out == ""; {
				select {
				case out = <-printed:
					if !want.MatchString(out) {
						t.Errorf("it printed %s, want %s", out, want)
					}
				case <-c.cuts: // and again
				}
			}
			if calls := d.List("/v1/calls"); len(calls) != 1 {
				t.Errorf("%d calls", len(calls))
			}
		})
	}
}

// The client for Python sends successive requests over one connection.
func TestOpsKeptConnections(t *testing.T) {
	d := rig.Start(t, nil)
	c := newCutter(t, d, "nothing is cut")
	out := run(t, "http://"+c.Addr().String(), "clients/python", "python3", "-c", `import recurgent
calculator = recurgent.role("calculator")
print(*(calculator.add(n, 3) for n in range(5)))`)
	if connections := c.passed.Load(); out != "3 4 5 6 7\n" || connections != 1 {
		t.Errorf("it printed %q by %d connections", out, connections)
	}
}
