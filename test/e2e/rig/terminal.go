package rig

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
	"github.com/hinshun/vt10x"
	"golang.org/x/term"
)

// Coloured reports whether raw contains an escape sequence that sets a colour or a style.
func Coloured(raw []byte) bool {
	return sgr.Match(raw)
}

// sgr matches a sequence that sets bold, faint or a foreground colour.
var sgr = regexp.MustCompile("\x1b\\[(?:[12]|3[0-7])m")

// A Terminal is a real process on a pseudo terminal, with the content of its screen.
type Terminal struct {
	t        *testing.T
	Cmd      *exec.Cmd
	own, tty *os.File
	before   *term.State // line discipline at the start
	exited   chan struct{}
	drained  chan struct{}

	mu            sync.Mutex
	columns, rows int           // guarded by mu
	raw           []byte        // all output; guarded by mu
	since         int           // length of the output drawn for an earlier size; guarded by mu
	changed       chan struct{} // closed at the next output, then replaced; guarded by mu
}

// OnTerminal starts the real binary on a pseudo terminal of that size. It is killed at the end of the test.
func OnTerminal(t *testing.T, columns, rows int, env []string, args ...string) *Terminal {
	t.Helper()
	own, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	s := &Terminal{t: t, own: own, tty: tty, exited: make(chan struct{}), drained: make(chan struct{}),
		columns: columns, rows: rows, changed: make(chan struct{})}
	if err := pty.Setsize(own, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	if s.before, err = term.GetState(int(tty.Fd())); err != nil {
		t.Fatal(err)
	}
	s.Cmd = exec.Command(os.Args[0], args...)
	s.Cmd.Env = append([]string{"TERM=xterm-256color"}, env...) // the last entry of a name counts
	s.Cmd.Stdin, s.Cmd.Stdout, s.Cmd.Stderr = tty, tty, tty
	s.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := s.Cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go s.read()
	go func() {
		_ = s.Cmd.Wait() // those who wait for exited read the state
		close(s.exited)
	}()
	t.Cleanup(func() {
		_ = s.Cmd.Process.Kill()
		<-s.exited
		s.tty.Close()
		<-s.drained
		s.own.Close()
		if t.Failed() {
			t.Logf("the screen was:\n%s", s.Screen())
		}
	})
	return s
}

// read collects the output until the last process on the terminal has ended.
func (s *Terminal) read() {
	defer close(s.drained)
	buf := make([]byte, 32<<10)
	for {
		n, err := s.own.Read(buf)
		s.mu.Lock()
		s.raw = append(s.raw, buf[:n]...)
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return // the last process on the terminal has ended
		}
	}
}

// filler takes the second cell of a wide character, because the emulator does not know wide characters.
const filler = '\uE000'

// Screen returns what a person sees: the output as a terminal shows it, without trailing blanks.
func (s *Terminal) Screen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	emulator := vt10x.New(vt10x.WithSize(s.columns, s.rows))
	_, _ = emulator.Write(forEmulator(s.raw[s.since:])) // it writes to memory
	lines := strings.Split(emulator.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.ReplaceAll(line, string(filler), ""), " ")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// forEmulator removes sequences that the emulator misinterprets (private forms of SGR and of cursor restoring) and
// gives wide characters their second cell.
func forEmulator(raw []byte) []byte {
	var out bytes.Buffer
	var state byte
	for len(raw) > 0 {
		seq, width, n, next := ansi.DecodeSequence(raw, state, nil)
		switch {
		case bytes.HasPrefix(seq, []byte("\x1b[")) && len(seq) > 3 && bytes.IndexByte([]byte("<=>?"), seq[2]) >= 0 &&
			bytes.IndexByte([]byte("mup"), seq[len(seq)-1]) >= 0:
		case width > 1:
			r, _ := utf8.DecodeRune(seq)
			out.WriteString(string(r) + string(filler))
		case width == 1:
			r, _ := utf8.DecodeRune(seq)
			out.WriteString(string(r))
		default:
			out.Write(seq)
		}
		raw, state = raw[n:], next
	}
	return out.Bytes()
}

// Bytes returns everything that the process has written.
func (s *Terminal) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Clone(s.raw)
}

// WaitFor waits until wanted holds for the screen, and returns the screen. what describes the condition in a failure.
func (s *Terminal) WaitFor(what string, wanted func(screen string) bool) string {
	s.t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if now := s.Screen(); wanted(now) {
			return now
		}
		select {
		case <-changed:
		case <-s.drained:
			if now := s.Screen(); wanted(now) {
				return now
			}
			s.t.Fatalf("the process ended before the screen showed %s", what)
		case <-deadline.C:
			s.t.Fatalf("the screen does not show %s", what)
		}
	}
}

// Shows waits until the screen contains all parts, and returns it.
func (s *Terminal) Shows(parts ...string) string {
	s.t.Helper()
	return s.WaitFor(strings.Join(parts, " and "), func(screen string) bool {
		for _, p := range parts {
			if !strings.Contains(screen, p) {
				return false
			}
		}
		return true
	})
}

// Golden waits until the screen, after plain, equals a file in testdata. With -update it writes the first screen that
// contains all parts. A screen is drawn in pieces and several of them may contain the parts, so it must wait for the
// file's content.
func (s *Terminal) Golden(name string, plain func(screen string) string, parts ...string) {
	s.t.Helper()
	screen := s.Shows(parts...)
	if *Update {
		Golden(s.t, name, plain(screen))
	}
	want, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		s.t.Fatal(err)
	}
	s.WaitFor("what is in testdata/"+name+" (go test -update writes it)",
		func(now string) bool { return plain(now)+"\n" == string(want) })
}

// Lacks waits until the part is gone from the screen, and returns the screen.
func (s *Terminal) Lacks(part string) string {
	s.t.Helper()
	return s.WaitFor("no "+part, func(screen string) bool { return !strings.Contains(screen, part) })
}

// Changed waits until the process has changed the line discipline, for example to read without echo.
func (s *Terminal) Changed() {
	s.t.Helper()
	Until(s.t, "another line discipline", func() bool {
		now, err := term.GetState(int(s.tty.Fd()))
		return err == nil && !reflect.DeepEqual(now, s.before)
	})
}

// Press types the keys.
func (s *Terminal) Press(keys string) {
	s.t.Helper()
	if _, err := s.own.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// Resize changes the size of the terminal. Screen then shows only what the process draws afterwards.
func (s *Terminal) Resize(columns, rows int) {
	s.t.Helper()
	s.mu.Lock()
	s.columns, s.rows, s.since = columns, rows, len(s.raw)
	s.mu.Unlock()
	if err := pty.Setsize(s.own, &pty.Winsize{Cols: uint16(columns), Rows: uint16(rows)}); err != nil {
		s.t.Fatal(err)
	}
}

// Ends waits for the exit code and checks that the terminal is restored: the line discipline, the main screen, the
// cursor, and all modes.
func (s *Terminal) Ends(code int) {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(Patience):
		s.t.Fatal("the process does not end")
	}
	if got := s.Cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d", got, code)
	}
	after, err := term.GetState(int(s.tty.Fd()))
	if err != nil || !reflect.DeepEqual(after, s.before) {
		s.t.Errorf("the terminal's modes are not what they were: %v, %v", after, err)
	}
	s.tty.Close()
	<-s.drained
	raw := string(s.Bytes())
	for _, mode := range regexp.MustCompile(
		`\x1b\[\?(1049|2004|1000|1002|1003|1006|1004|2026|2027)h`).FindAllStringSubmatch(raw, -1) {
		if strings.LastIndex(raw, "\x1b[?"+mode[1]+"l") < strings.LastIndex(raw, mode[0]) {
			s.t.Errorf("mode %s is left on", mode[1])
		}
	}
	if strings.LastIndex(raw, "\x1b[?25h") < strings.LastIndex(raw, "\x1b[?25l") {
		s.t.Error("the cursor is left hidden")
	}
}
