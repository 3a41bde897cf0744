package spend

import (
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Scopes of caps.
const (
	ScopeNamespace = store.ScopeNamespace
	ScopeMethod    = store.ScopeMethod
	ScopeOwner     = store.ScopeOwner
	ScopeDaemon    = store.ScopeDaemon
)

// Windows of caps.
const (
	WindowDay   = "day"
	WindowMonth = "month"
)

// nearly is the share of a cap at which people are warned.
const nearly = 0.8

// Windows returns the kinds of windows that Ratios reports.
func Windows() []string { return []string{"day", "month", "method_day", "owner_day", "daemon_day"} }

// sum holds the tokens used in a window, and those reserved in addition.
type sum struct{ used, reserved int64 }

// cap is a limit with its window.
type cap struct {
	namespace     agent.Namespace
	scope, window string
	name          string // of the method or the owner
	limit         int64
	from          agent.Day // first day of the window
}

func (c cap) ratio(s *sum) float64 { return float64(s.used) / float64(c.limit) }

// metric returns the kind of window as listed by Windows.
func (c cap) metric() string {
	if c.scope == ScopeNamespace {
		return c.window
	}
	return c.scope + "_" + c.window
}

// resets returns the end of the window.
func (c cap) resets() time.Time {
	if c.window == WindowMonth {
		_, next := c.from.Month()
		return next.Start()
	}
	return (c.from + 1).Start()
}

// stored returns the cap in the form that the store uses, for a request of w.
func (c cap) stored(w who) store.Cap {
	return store.Cap{Scope: c.scope, Role: w.Role, Method: w.Method, Owner: w.Owner, First: c.from,
		Last: agent.DayOf(c.resets()) - 1, Limit: c.limit}
}

// limitOf returns the cap with its use.
func (c cap) limitOf(s *sum) Limit {
	return Limit{Scope: c.scope, Name: c.name, Window: c.window, Limit: c.limit, Used: s.used, Reserved: s.reserved,
		ResetsAt: c.resets()}
}

// Limit is a cap with its use, in tokens.
type Limit struct {
	Scope    string    `json:"scope"`          // namespace, method, owner, daemon
	Name     string    `json:"name,omitempty"` // of the method, as role.method, or of the owner
	Window   string    `json:"window"`         // day, month
	Limit    int64     `json:"limit"`
	Used     int64     `json:"used"`
	Reserved int64     `json:"reserved"` // by requests in flight
	ResetsAt time.Time `json:"resets_at"`
}

// ExceededError reports the cap that a request to a model could have exceeded. The request was not sent.
type ExceededError struct {
	Limit
	Needed int64 // the maximum cost of the request
}

func (e *ExceededError) Error() string {
	what := map[string]string{ScopeNamespace: "", ScopeMethod: " of the method " + e.Name, ScopeOwner: " of " + e.Name,
		ScopeDaemon: " of this server"}[e.Scope]
	return fmt.Sprintf("the model was not asked: the request may cost %d tokens, and of the %d tokens a %s%s %d are used and %d reserved; the next %s begins at %s",
		e.Needed, e.Limit.Limit, e.Window, what, e.Used, e.Reserved, e.Window, e.ResetsAt.Format(time.RFC3339))
}

// Details returns the figures of the cap, for the metadata of an error outcome.
func (e *ExceededError) Details() map[string]any {
	return map[string]any{"scope": e.Scope, "window": e.Window, "limit": e.Limit.Limit, "used": e.Used,
		"reserved": e.Reserved, "needed": e.Needed, "resets_at": e.ResetsAt.Format(time.RFC3339)}
}

// exceeded returns the error for a request that needs more than is left of the cap. It hides the use of the daemon's
// cap, which only its operator may see.
func (c cap) exceeded(s *sum, needed int64) *ExceededError {
	e := &ExceededError{Limit: c.limitOf(s), Needed: needed}
	if c.scope == ScopeDaemon {
		e.Used, e.Reserved = e.Limit.Limit, 0
	}
	return e
}
