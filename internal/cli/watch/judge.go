package watch

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	tea "charm.land/bubbletea/v2"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/cli/text"
	"github.com/recurgentd/recurgentd/internal/client"
)

// Messages about judging.
type (
	answerMsg     struct{ id, answer string } // the answer of a call
	judgedMsg     struct{ id, verdict, words string }
	correctionMsg struct {
		of    method
		words string
		ended bool // the current program is no longer doubted
	}
)

// maxDoubted bounds the methods whose corrections are polled.
const maxDoubted = 16

// A judge sends verdicts to the daemon and polls the resulting corrections. It is safe for concurrent use.
type judge struct {
	ctx context.Context
	c   *client.Client

	mu    sync.Mutex
	wrong map[method]bool // methods to poll; guarded by mu
}

// watch adds the method to those whose corrections are polled. j may be nil.
func (j *judge) watch(m method) {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.wrong) < maxDoubted {
		j.wrong[m] = true
	}
}

func (j *judge) doubted() []method {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]method, 0, len(j.wrong))
	for m := range j.wrong {
		all = append(all, m)
	}
	return all
}

// poll reports the progress of the corrections. A program that is no longer doubted is reported one last time.
func (j *judge) poll(each func(correctionMsg)) {
	for _, m := range j.doubted() {
		var a struct {
			Doubted    bool             `json:"doubted"`
			Correction agent.Correction `json:"correction"`
		}
		if err := j.c.Get(j.ctx, client.MethodPath(m.role, m.name), &a); err != nil {
			continue // the stream reports a lost daemon
		}
		if !a.Doubted {
			j.mu.Lock()
			delete(j.wrong, m)
			j.mu.Unlock()
		}
		each(correctionMsg{m, text.Correction(a.Correction), !a.Doubted})
	}
}

// answer returns a command that fetches the answer of a call.
func (j *judge) answer(id string) tea.Cmd {
	return func() tea.Msg {
		var call struct {
			Outcome *agent.Outcome `json:"outcome"`
		}
		if err := j.c.Get(j.ctx, client.CallPath(id), &call); err != nil || call.Outcome == nil {
			// The values are gone, but the daemon may still accept a verdict.
			return answerMsg{id, ""}
		}
		if !call.Outcome.OK() {
			return answerMsg{id, "error " + text.Clean(call.Outcome.ErrorType, 40)}
		}
		return answerMsg{id, text.Clean(text.JSON(call.Outcome.Value), 40)}
	}
}

// say returns a command that sends a verdict.
func (j *judge) say(w Call, body client.Judgement) tea.Cmd {
	return func() tea.Msg {
		data, _, err := j.c.Judge(j.ctx, w.ID, body, 0)
		if err != nil {
			return judgedMsg{w.ID, w.Verdict, text.Clean(err.Error(), 200)}
		}
		var v struct {
			Correction agent.Correction `json:"correction"`
		}
		_ = json.Unmarshal(data, &v) // an unreadable reply counts as one without a correction
		words := w.Text + " is judged " + body.Verdict
		if body.Verdict == agent.VerdictWrong {
			j.watch(w.method())
			if v.Correction.State != "" && v.Correction.State != agent.CorrectionNone {
				words += ", correction " + text.Correction(v.Correction)
			}
		}
		return judgedMsg{w.ID, body.Verdict, words}
	}
}

func (j *judge) drop(w Call) tea.Cmd {
	return func() tea.Msg {
		if _, err := j.c.Do(j.ctx, http.MethodDelete, client.VerdictPath(w.ID), nil); err != nil {
			return judgedMsg{w.ID, w.Verdict, text.Clean(err.Error(), 200)}
		}
		return judgedMsg{w.ID, "", w.Text + ": the verdict is taken back"}
	}
}

// begin opens the prompt for the key, to judge the selected call.
func (s *screen) begin(key string) tea.Cmd {
	b := s.calls.byID[s.at]
	switch {
	case b == nil:
		s.said = "select a call with ↑ first"
		return nil
	case !b.seen || b.call.Status == Running || b.call.Status == Gone:
		s.said = "the call has not ended"
		return nil
	}
	w := b.call
	switch key {
	case "r":
		s.prompt = &prompt{of: w, label: " is right: Enter says so, Esc does not",
			enter: func(string) (*prompt, tea.Cmd, error) {
				return nil, s.judge.say(w, client.Judgement{Verdict: agent.VerdictRight}), nil
			}}
	case "w":
		s.prompt = s.askExpected(w)
	case "u":
		s.prompt = &prompt{of: w, label: ": Enter takes the verdict back, Esc does not",
			enter: func(string) (*prompt, tea.Cmd, error) {
				return nil, s.judge.drop(w), nil
			}}
	}
	return s.judge.answer(w.ID)
}

// askExpected prompts for the right answer and then for a note.
func (s *screen) askExpected(w Call) *prompt {
	return &prompt{of: w, label: " is wrong. Right is (empty: not known): ",
		enter: func(expected string) (*prompt, tea.Cmd, error) {
			body := client.Judgement{Verdict: agent.VerdictWrong}
			if expected != "" {
				body.Expected = client.Value(expected)
			}
			return &prompt{of: w, label: " is wrong. A note for the model (may be empty): ", answer: s.prompt.answer,
				enter: func(note string) (*prompt, tea.Cmd, error) {
					if len(note) > 4<<10 {
						return nil, nil, errors.New("a note has at most 4 KiB")
					}
					body.Note = note
					return nil, s.judge.say(w, body), nil
				}}, nil, nil
		}}
}

// showAnswer adds the call's answer to the prompt about that call.
func (s *screen) showAnswer(m answerMsg) {
	if s.prompt != nil && s.prompt.of.ID == m.id {
		s.prompt.answer = m.answer
	}
}

func (s *screen) correction(m correctionMsg) {
	if _, known := s.wrongs[m.of]; m.ended && known {
		s.said = text.Clean(m.of.role+"."+m.of.name, 80) + ": correction " + m.words
	}
	if m.ended {
		delete(s.wrongs, m.of)
		return
	}
	s.wrongs[m.of] = m.words
}
