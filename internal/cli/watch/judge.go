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

// Messages of judging.
type (
	answerMsg     struct{ id, answer string } // what a call answered
	judgedMsg     struct{ id, verdict, words string }
	correctionMsg struct {
		of    method
		words string
		ended bool // the current program is no longer doubted
	}
)

// maxDoubted bounds how many methods are asked for their corrections.
const maxDoubted = 16

// A judge speaks to the daemon about verdicts and the corrections that follow. It is safe for concurrent use.
type judge struct {
	ctx context.Context
	c   *client.Client

	mu    sync.Mutex
	wrong map[method]bool // whose corrections are asked for; guarded by mu
}

// watch has the method's correction reported from now on.
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

// poll reports how far the corrections have come. Those of programs that are no longer doubted are reported once more.
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

// answer fetches what a call answered.
func (j *judge) answer(id string) tea.Cmd {
	return func() tea.Msg {
		var call struct {
			Outcome *agent.Outcome `json:"outcome"`
		}
		if err := j.c.Get(j.ctx, client.CallPath(id), &call); err != nil || call.Outcome == nil {
			return answerMsg{id, ""} // its values are gone; it can be judged all the same, if the daemon says so
		}
		if !call.Outcome.OK() {
			return answerMsg{id, "error " + text.Clean(call.Outcome.ErrorType, 40)}
		}
		return answerMsg{id, text.Clean(text.JSON(call.Outcome.Value), 40)}
	}
}

// say sends a verdict.
func (j *judge) say(w Call, body client.Judgement) tea.Cmd {
	return func() tea.Msg {
		data, _, err := j.c.Judge(j.ctx, w.ID, body, 0)
		if err != nil {
			return judgedMsg{w.ID, w.Verdict, text.Clean(err.Error(), 200)}
		}
		var v struct {
			Correction agent.Correction `json:"correction"`
		}
		_ = json.Unmarshal(data, &v) // a reply that cannot be read says nothing of a correction
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

// begin asks what the key wants to know before the selected call is judged.
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

// askExpected asks for the right answer, and then for a note.
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

// showAnswer puts what the call answered into the prompt that asks about it.
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
