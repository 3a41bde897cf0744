package runtime

import (
	"context"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/call"
)

// Responds reports whether the session's next call of the method, without arguments and without a contract, would be
// answered without a model request, and by what: a setter or a stored program. It decides as the call itself would. A
// context key with the method's name answers nothing; it is only named if no program answers, because a program could
// find its value there.
func (r *Runtime) Responds(ctx context.Context, sessionID, method string) (Introspection, error) {
	s, err := r.env.Store.Session(ctx, sessionID)
	if err != nil {
		return Introspection{}, err
	}
	if err := agent.CheckStoredName("method", method); err != nil {
		return Introspection{}, err
	}
	via := func(v string, responds bool) (Introspection, error) {
		return Introspection{Responds: responds, Via: &v}, nil
	}
	if call.SetterKey(method) != "" {
		return via("setter", true)
	}
	next, err := r.newCall(CallRequest{SessionID: sessionID, Role: s.Role, Method: method, Owner: s.Owner},
		s).choose(ctx)
	if err != nil {
		return Introspection{}, err
	}
	if next.answersStored() {
		return via("artifact", true)
	}
	if _, ok := next.Memory[method]; ok {
		return via("context", false)
	}
	return Introspection{}, nil
}
