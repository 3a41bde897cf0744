package api

import (
	"net/http"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/provider"
)

// modelView is the recent state of the daemon's model.
type modelView struct {
	Name      string           `json:"name"`
	BaseURL   string           `json:"base_url"` // without secrets
	Profile   provider.Profile `json:"profile"`
	LastError *modelFailure    `json:"last_error"`
	LastOKAt  *time.Time       `json:"last_ok_at"`
}

type modelFailure struct {
	At      time.Time `json:"at"`
	Status  int       `json:"status"` // HTTP status, or 0 if there was no reply
	Message string    `json:"message"`
}

// viewOfModel converts the model's status. Absent values are null.
func viewOfModel(s provider.Status) *modelView {
	v := &modelView{Name: s.Model, BaseURL: s.BaseURL, Profile: s.Profile}
	if f := s.LastError; f != nil {
		v.LastError = &modelFailure{f.At.UTC(), f.Status, f.Message}
	}
	if !s.LastOK.IsZero() {
		at := s.LastOK.UTC()
		v.LastOKAt = &at
	}
	return v
}

// modelCheck is the result of asking the model for one test program.
type modelCheck struct {
	OK     bool        `json:"ok"`
	Steps  []modelStep `json:"steps"`
	Usage  agent.Usage `json:"usage"`
	TookMs int64       `json:"took_ms"`
	Model  *modelView  `json:"model"`
}

type modelStep struct {
	Name   string `json:"name"`
	Result string `json:"result"`
	Detail string `json:"detail"`
}

// checkModel asks the model for a program in the same way as calls do. It spends tokens of the principal.
func (s *server) checkModel(w *reply, r *http.Request) error {
	c, asked, err := w.run.CheckModel(r.Context(), w.owner)
	switch {
	case err != nil:
		return err
	case !asked:
		return fault(codeNotFound, "no model is asked: programs come from a recording",
			"Start the daemon with OPENAI_API_KEY or OPENAI_BASE_URL.")
	}
	status, _ := w.run.ModelStatus()
	v := modelCheck{OK: c.OK, Steps: make([]modelStep, len(c.Steps)), Usage: c.Usage, TookMs: c.Took.Milliseconds(),
		Model: viewOfModel(status)}
	for i, step := range c.Steps {
		v.Steps[i] = modelStep(step)
	}
	return s.send(w, http.StatusOK, v)
}
