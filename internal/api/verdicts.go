package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/recurgentd/recurgentd/internal/access"
	"github.com/recurgentd/recurgentd/internal/runtime/operator"
)

// Verdicts are the operations on people's verdicts that the interface needs from a runtime.
type Verdicts interface {
	// Judge records a verdict on a call. The channel, if not nil, is closed after the first attempt at a correction.
	Judge(ctx context.Context, callID string, j operator.Judgement) (operator.JudgedCall, <-chan struct{}, error)
	Verdict(ctx context.Context, callID string) (operator.JudgedCall, error)
	DropVerdict(ctx context.Context, callID, actor string, mayOperate bool) error
}

const maxNote = 4 << 10 // bytes of a note

// unproposed returns the problem of a missing scope for a change that only principals with operate may make. Other
// errors pass unchanged.
func (w *reply) unproposed(err error) error {
	if errors.Is(err, operator.ErrInForce) {
		return cmp.Or(w.needs(access.Operate), err)
	}
	return err
}

// postVerdict records a person's verdict on a call. With "Prefer: wait=N" it waits for the first attempt at a
// correction.
func (s *server) postVerdict(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	j := operator.Judgement{Actor: w.owner, MayOperate: w.who.Scopes.Has(access.Operate)}
	err = s.decode(w, r, false, func(f *fields, name, v []byte) {
		switch string(name) {
		case "verdict":
			f.text("/verdict", v, &j.Verdict)
		case "expected":
			j.Expected = append(json.RawMessage{}, v...) // null is an expectation, too
		case "expected_error_type":
			f.short("/expected_error_type", v, &j.ExpectedErrorType, 64)
		case "note":
			f.short("/note", v, &j.Note, maxNote)
		default:
			f.unknown("", name, "verdict, expected, expected_error_type, note")
		}
	})
	if err != nil {
		return err
	}
	if j.Verdict == "" {
		return required("verdict", "right or wrong")
	}
	var wait time.Duration
	if prefer := r.Header["Prefer"]; len(prefer) > 0 {
		if _, wait, err = parsePrefer(prefer); err != nil {
			return err
		}
	}
	judged, tried, err := w.run.Judge(r.Context(), id, j)
	if err != nil {
		return noCall(w.unproposed(err), id)
	}
	if tried != nil && wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-tried:
		case <-timer.C:
		case <-r.Context().Done():
		}
		// read again: the attempt may have changed the state of the correction
		if judged, err = w.run.Verdict(r.Context(), id); err != nil {
			return noCall(err, id)
		}
		w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	}
	return s.send(w, http.StatusOK, judged)
}

func (s *server) getVerdict(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	v, err := w.run.Verdict(r.Context(), id)
	if err != nil {
		return missing(err, "verdict on the call "+id)
	}
	return s.send(w, http.StatusOK, v)
}

// deleteVerdict withdraws a verdict. Without the scope operate, only a proposed one.
func (s *server) deleteVerdict(w *reply, r *http.Request) error {
	id, err := callID(r)
	if err != nil {
		return err
	}
	if err := w.run.DropVerdict(r.Context(), id, w.owner, w.who.Scopes.Has(access.Operate)); err != nil {
		return missing(w.unproposed(err), "verdict on the call "+id)
	}
	return s.noContent(w)
}
