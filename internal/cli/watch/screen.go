// Package watch shows a daemon's calls as they end: as trees on a screen (Screen), or one line per call (Line).
//
// A Tail misses no call across lost connections. The package keeps a bounded number of calls in memory and stores
// nothing.
package watch

import (
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// A screen is the state of watch on a terminal. Messages change it and View draws it. Only the loop of bubbletea may
// use it.
type screen struct {
	url     string
	colours text.Palette
	calls   *forest
	want    Filter
	flat    bool
	top     int    // index of the first line shown, unless following
	follow  bool   // keep the newest line in view
	at      string // id of the selected call; "" when following
	prompt  *prompt
	said    string // the result of the last verdict, until the next key
	judge   *judge // nil means that calls cannot be judged
	wrongs  map[method]string
	lost    string // why the connection is lost; "" while connected
	started bool   // it was connected at some time

	width, height int
	ended, failed int // counts of received calls
}

// Messages from the tail.
type (
	callMsg    struct{ call Call }
	runningMsg struct{ calls []Call }
	stateMsg   struct{ gone error }
)

// A Terminal is the input and output of a screen.
type Terminal struct {
	Keys    io.Reader // nil means no keys
	Out     io.Writer
	Colours text.Palette
}

// Screen shows the tail on the terminal until the user, ctx or the daemon ends it, and then restores the terminal. It
// sets the tail's State and Each. The first error is the daemon's, the second the terminal's.
func Screen(ctx context.Context, at Terminal, f *Tail) (daemon, terminal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &screen{url: f.Client.URL(), colours: at.Colours, calls: newForest(), want: f.Want, follow: true,
		judge: &judge{ctx: ctx, c: f.Client, wrong: map[method]bool{}}, wrongs: map[method]string{}}
	// Fetch all calls: the filter may change on the screen and then applies to earlier calls as well.
	f.Want = Filter{}
	profile := colorprofile.ASCII
	if s.colours {
		profile = colorprofile.ANSI
	}
	p := tea.NewProgram(s, tea.WithOutput(at.Out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile),
		tea.WithInput(at.Keys))
	f.State = func(gone error) { p.Send(stateMsg{gone}) }
	f.Each = func(_ json.RawMessage, e *agent.LogEntry) error {
		p.Send(callMsg{CallFrom(e)})
		return nil
	}
	ended, polled := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- f.Run(ctx)
		p.Quit() // after a signal, or because the daemon refuses
	}()
	go func() {
		defer close(polled)
		f.pollRunning(ctx, func(list []Call) {
			p.Send(runningMsg{list})
			s.judge.poll(func(m correctionMsg) { p.Send(m) })
		})
	}()
	_, terminal = p.Run()
	cancel()
	<-polled
	return <-ended, terminal
}

func (s *screen) Init() tea.Cmd { return nil }

// Update implements tea.Model. It handles one message.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case callMsg:
		s.ended++
		if m.call.Status == agent.StatusError {
			s.failed++
		}
		s.calls.add(m.call)
		if m.call.Doubted || m.call.Verdict == agent.VerdictWrong {
			s.judge.watch(m.call.method())
		}
	case answerMsg:
		s.showAnswer(m)
	case judgedMsg:
		s.said = m.words
		s.calls.mark(m.id, m.verdict)
	case correctionMsg:
		s.correction(m)
	case runningMsg:
		s.calls.running(m.calls)
	case stateMsg:
		s.lost = ""
		if s.started = true; m.gone != nil {
			s.lost = text.Clean(m.gone.Error(), 200)
		}
	case tea.PasteMsg:
		if s.prompt != nil {
			s.prompt.typed += m.Content
		}
	case tea.KeyPressMsg:
		s.said = ""
		if s.prompt != nil {
			return s, s.typeKey(m)
		}
		return s, s.key(m.String())
	}
	return s, nil
}

// key handles a key outside of prompts.
func (s *screen) key(name string) tea.Cmd {
	page := max(1, s.rows()-1)
	switch name {
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "/":
		s.prompt = &prompt{label: "filter: ", typed: s.want.String(), enter: s.setFilter}
	case "esc":
		s.want = Filter{}
	case "t":
		s.flat = !s.flat
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "pgup":
		s.move(-page)
	case "pgdown", "space":
		s.move(page)
	case "home", "g":
		s.move(-1 << 20)
	case "end", "G":
		s.follow, s.at = true, ""
	case "w", "r", "u":
		return s.begin(name)
	}
	return nil
}

func (s *screen) setFilter(typed string) (*prompt, tea.Cmd, error) {
	want, err := parseFilter(typed)
	if err == nil {
		s.want, s.follow, s.at = want, true, ""
	}
	return nil, nil, err
}

// A prompt asks for a line of text at the bottom of the screen.
type prompt struct { // the call in question; zero for the filter
	of     Call   // the call's answer, once known
	answer string // of that call, once it is known
	label  string // shown after the call
	typed  string
	wrong  string // error about the input
	// enter accepts the input and returns the next prompt, if any. An error keeps this prompt open.
	enter func(typed string) (next *prompt, cmd tea.Cmd, fault error)
}

// String returns the question. The call is truncated, to leave room for the input.
func (p *prompt) String() string {
	if p.of.ID == "" {
		return p.label
	}
	call := text.Clean(p.of.Text, 30)
	if p.answer != "" {
		call += " = " + text.Clean(p.answer, 20)
	}
	return call + p.label
}

// typeKey edits the input of a prompt.
func (s *screen) typeKey(m tea.KeyPressMsg) (cmd tea.Cmd) {
	p := s.prompt
	switch m.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc":
		s.prompt = nil
	case "enter":
		next, cmd, err := p.enter(p.typed)
		if err != nil {
			p.wrong = text.Clean(err.Error(), 200)
			return nil
		}
		s.prompt = next
		return cmd
	case "backspace":
		if r := []rune(p.typed); len(r) > 0 {
			p.typed = string(r[:len(r)-1])
		}
	case "ctrl+u":
		p.typed = ""
	default:
		p.typed += m.Text
	}
	p.typed = strings.TrimLeft(p.typed, " ")
	return nil
}

// move moves the selection by a number of lines. Without a selection it counts from the end. Beyond the last line the
// screen follows new calls.
func (s *screen) move(by int) {
	lines := s.calls.lines(s.want, s.flat)
	i := s.selected(lines)
	switch {
	case len(lines) == 0 || i+by >= len(lines):
		s.follow, s.at = true, ""
		return
	case s.follow || i < 0:
		s.top = max(0, len(lines)-s.rows())
		i = len(lines) + by
	default:
		i += by
	}
	i = max(0, i)
	s.follow, s.at = false, lines[i].call.ID
	s.show(i)
}

// show scrolls until line i is in view.
func (s *screen) show(i int) {
	s.top = max(min(s.top, i), i-max(1, s.rows())+1)
}

// selected returns the index of the selected line, or -1.
func (s *screen) selected(lines []twig) int {
	if s.at == "" {
		return -1
	}
	return slices.IndexFunc(lines, func(t twig) bool { return t.call.ID == s.at })
}
