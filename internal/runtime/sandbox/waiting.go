package sandbox

import (
	"context"
	"encoding/json"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/recurgent"
	"github.com/recurgentd/recurgentd/internal/runtime/sandbox/wire"
)

// wait waits for another program, for the network or for the model. Meanwhile the program's clock stands still and its place among the
// running ones is free for others.
func (x *exchange) wait(outside func()) {
	began := time.Now()
	x.pool.admission.pause(x.req)
	outside()
	x.pool.admission.resume(x.req)
	x.host += time.Since(began)
}

// predict has the host ask the model.
func (x *exchange) predict(ctx context.Context, params json.RawMessage) (json.RawMessage, *recurgent.Failure) {
	var q struct{ Signature, Inputs json.RawMessage }
	if json.Unmarshal(params, &q) != nil {
		return nil, denied("predict: bad parameters")
	}
	var outputs json.RawMessage
	var refused *AuthoredError
	x.wait(func() { outputs, refused = x.h.Predict(ctx, q.Signature, q.Inputs) })
	if refused != nil {
		return nil, &recurgent.Failure{Type: refused.Type, Message: wire.BoundText([]byte(refused.Message), wire.MaxMessage)}
	}
	return outputs, nil
}
