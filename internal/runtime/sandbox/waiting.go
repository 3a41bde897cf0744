package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// wait calls outside, which waits for another program, the network or the model, and then waits for a place to run
// again. Meanwhile the program's clock stands still and others may use its place.
func (x *exchange) wait(ctx context.Context, outside func()) {
	began := time.Now()
	x.pool.admission.pause(&x.req)
	outside()
	x.pool.admission.resume(ctx, &x.req)
	x.host += time.Since(began)
}

// predict asks the model through the host.
func (x *exchange) predict(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	var q struct{ Signature, Inputs json.RawMessage }
	if json.Unmarshal(params, &q) != nil {
		return nil, denied("predict: bad parameters")
	}
	var outputs json.RawMessage
	var refused *AuthoredError
	x.wait(ctx, func() { outputs, refused = x.h.Predict(ctx, q.Signature, q.Inputs) })
	if refused != nil {
		return nil, &recurgent.Failure{Type: refused.Type, Message: wire.BoundText([]byte(refused.Message),
			wire.MaxMessage)}
	}
	return outputs, nil
}

// Bounds of call.Log in one call.
const (
	maxNotes = 100
	maxNote  = 1 << 10 // bytes
)

// note keeps a text of call.Log, cut to maxNote. It ignores texts beyond maxNotes.
func (x *exchange) note(params json.RawMessage) {
	var q struct{ Text string }
	if json.Unmarshal(params, &q) == nil && len(x.notes) < maxNotes {
		x.notes = append(x.notes, wire.BoundText([]byte(q.Text), maxNote))
	}
}

// sleep performs a program's time.Sleep in live runs. A sleep is not an effect: a replay moves the clock without
// waiting. A sleep that cannot end in time ends the run at once.
func (x *exchange) sleep(ctx context.Context, params json.RawMessage) (reply, *Failure) {
	var q struct{ Nanoseconds time.Duration }
	if json.Unmarshal(params, &q) != nil || q.Nanoseconds <= 0 {
		return reply{refusal: denied("sleep: bad parameters")}, nil
	}
	done := reply{body: json.RawMessage("null")}
	if x.journal.replaying() || x.req.Sleep == 0 {
		return done, nil
	}
	if left := x.req.Sleep - x.slept; q.Nanoseconds > left {
		return reply{}, &Failure{Type: agent.ErrTimeout, Detail: "sleep",
			Message: fmt.Sprintf("the program sleeps %s, and a call may sleep %s more", q.Nanoseconds, left),
			Hint:    "Sleep less: a call may sleep 30 s in sum."}
	}
	if end := x.req.End; !end.IsZero() && time.Until(end) < q.Nanoseconds {
		return reply{}, &Failure{Type: agent.ErrTimeout, Detail: "sleep",
			Message: fmt.Sprintf("the program sleeps %s, which would not end within the call's time", q.Nanoseconds),
			Sleeps:  x.slept + q.Nanoseconds}
	}
	x.slept += q.Nanoseconds
	x.wait(ctx, func() {
		t := time.NewTimer(q.Nanoseconds)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	})
	return done, nil
}
