package cli

import (
	"context"
	"encoding/json"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// A screen is what watch shows on a terminal: a state that messages change and View draws. Only the program's loop
// touches it.
type screen struct {
	url     string
	colours palette
	calls   *forest
	want    filter
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
	callMsg    struct{ call watched }
	runningMsg struct{ calls []watched }
	stateMsg   struct{ gone error }
)

// watchScreen runs the screen until the user, a signal or the daemon ends it. The terminal is given back as it was.
func watchScreen(ctx context.Context, sh Shell, f *tail) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &screen{url: f.c.base, colours: sh.colours(sh.Stdout), calls: newForest(), want: f.want, follow: true}
	f.want = filter{} // it may be changed on the screen; what came before is shown then
	profile := colorprofile.ASCII
	if s.colours {
		profile = colorprofile.ANSI
	}
	options := []tea.ProgramOption{tea.WithOutput(sh.Stdout), tea.WithoutSignalHandler(), tea.WithColorProfile(profile)}
	if _, ok := sh.terminal(sh.Stdin); ok {
		options = append(options, tea.WithInput(sh.Stdin))
	} else {
		options = append(options, tea.WithInput(nil))
	}
	p := tea.NewProgram(s, options...)
	f.state = func(gone error) { p.Send(stateMsg{gone}) }
	f.each = func(_ json.RawMessage, e *agent.LogEntry) error {
		p.Send(callMsg{watchedFrom(e)})
		return nil
	}
	ended, polled := make(chan error, 1), make(chan struct{})
	go func() {
		err := f.run(ctx)
		ended <- ending(ctx, err)
		p.Quit() // by a signal, or since the daemon refuses
	}()
	go func() {
		defer close(polled)
		f.c.pollRunning(ctx, func(list []watched) { p.Send(runningMsg{list}) })
	}()
	_, err := p.Run()
	cancel()
	<-polled
	if refused := <-ended; refused != nil {
		return refused
	}
	return exitWith(ExitFailed, err)
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
			s.lost = clean(m.gone.Error(), 200)
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
		s.want, s.wrong = filter{}, ""
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

// typeKey edits the filter. It takes effect with Enter, when it is one.
func (s *screen) typeKey(m tea.KeyPressMsg) tea.Cmd {
	switch m.String() {
	case "ctrl+c":
		return tea.Quit
	case "esc":
		s.typing, s.wrong = false, ""
	case "enter":
		want, err := parseFilter(s.typed)
		if err != nil {
			s.wrong = clean(err.Error(), 200)
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

// move scrolls; at the end the screen follows what comes.
func (s *screen) move(by int) {
	lines := len(s.calls.lines(s.want, s.flat))
	bottom := max(0, lines-s.rows())
	if s.follow {
		s.top = bottom
	}
	s.top = max(0, min(s.top+by, bottom))
	s.follow = s.top == bottom
}
