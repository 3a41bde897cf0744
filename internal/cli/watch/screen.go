// Package watch shows a daemon's calls as they end: as trees on a screen (Screen), or a line each (Line).
package watch

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
)

// A screen is the state of watch on a terminal: messages change it and View draws it. Only the loop of bubbletea uses it.
type screen struct {
	url     string
	colours text.Palette
	calls   *forest
	want    Filter
	flat    bool
	top     int  // first line shown, when not following
	follow  bool // the newest line stays in view
	typing  bool // the filter is being typed
	typed   string
	wrong   string // with what was typed
	lost    string // why there is no connection; "" when there is one
	started bool   // there was one

	width, height int
	ended, failed int // of the calls that came
}

// Messages of the tail.
type (
	callMsg    struct{ call Call }
	runningMsg struct{ calls []Call }
	stateMsg   struct{ gone error }
)

// A Terminal is where a screen is drawn and where its keys come from.
type Terminal struct {
	Keys    io.Reader // nil: no keys
	Out     io.Writer
	Colours text.Palette
}

// Screen shows the tail on the terminal until the user, a signal or the daemon ends it. The terminal is restored at the
// end. It sets the tail's State and Each. The first error is the daemon's, the second the terminal's.
func Screen(ctx context.Context, at Terminal, f *Tail) (daemon, terminal error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &screen{url: f.Client.URL(), colours: at.Colours, calls: newForest(), want: f.Want, follow: true}
	f.Want = Filter{} // it may be changed on the screen; what came before is shown then
	profile := colorprofile.ASCII
	if s.colours {
		profile = colorprofile.ANSI
	}
	p := tea.NewProgram(s, tea.WithOutput(at.Out), tea.WithoutSignalHandler(), tea.WithColorProfile(profile), tea.WithInput(at.Keys))
	f.State = func(gone error) { p.Send(stateMsg{gone}) }
	f.Each = func(_ json.RawMessage, e *agent.LogEntry) error {
		p.Send(callMsg{CallFrom(e)})
		return nil
	}
	ended, polled := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- f.Run(ctx)
		p.Quit() // by a signal, or since the daemon refuses
	}()
	go func() {
		defer close(polled)
		f.pollRunning(ctx, func(list []Call) { p.Send(runningMsg{list}) })
	}()
	_, terminal = p.Run()
	cancel()
	<-polled
	return <-ended, terminal
}

func (s *screen) Init() tea.Cmd { return nil }

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
	case runningMsg:
		s.calls.running(m.calls)
	case stateMsg:
		s.lost = ""
		if s.started = true; m.gone != nil {
			s.lost = text.Clean(m.gone.Error(), 200)
		}
	case tea.PasteMsg:
		if s.typing {
			s.typed += m.Content
		}
	case tea.KeyPressMsg:
		if s.typing {
			return s, s.typeKey(m)
		}
		return s, s.key(m.String())
	}
	return s, nil
}

func (s *screen) key(name string) tea.Cmd {
	page := max(1, s.rows()-1)
	switch name {
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "/":
		s.typing, s.typed, s.wrong = true, s.want.String(), ""
	case "esc":
		s.want, s.wrong = Filter{}, ""
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
		s.follow = true
	}
	return nil
}

// typeKey edits the filter. Enter applies it if it is valid.
func (s *screen) typeKey(m tea.KeyPressMsg) tea.Cmd {
	switch m.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc":
		s.typing, s.wrong = false, ""
	case "enter":
		want, err := parseFilter(s.typed)
		if err != nil {
			s.wrong = text.Clean(err.Error(), 200)
			return nil
		}
		s.typing, s.wrong, s.want, s.follow = false, "", want, true
	case "backspace":
		if r := []rune(s.typed); len(r) > 0 {
			s.typed = string(r[:len(r)-1])
		}
	case "ctrl+u":
		s.typed = ""
	default:
		s.typed += m.Text
	}
	s.typed = strings.TrimLeft(s.typed, " ")
	return nil
}

// move scrolls. At the end, the screen follows new calls.
func (s *screen) move(by int) {
	lines := len(s.calls.lines(s.want, s.flat))
	bottom := max(0, lines-s.rows())
	if s.follow {
		s.top = bottom
	}
	s.top = max(0, min(s.top+by, bottom))
	s.follow = s.top == bottom
}
