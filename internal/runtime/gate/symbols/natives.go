package symbols

import (
	"io"
	"time"

	"github.com/recurgentd/recurgentd/internal/runtime/gate/rt"
)

// Natives stand in for host symbols: the clock comes from an environment, and there is no terminal. Compiled programs
// have the same in the same places (package native/support).
type Natives map[string]any // by path and name, with a dot between them

// NewNatives returns the natives of an environment.
func NewNatives(env *rt.Env) Natives {
	return Natives{
		"time.Now":          env.Now,
		"time.Since":        func(t time.Time) time.Duration { return env.Now().Sub(t) },
		"time.Until":        func(t time.Time) time.Duration { return t.Sub(env.Now()) },
		"time.Sleep":        env.Sleep,
		"time.LoadLocation": rt.LoadLocation,

		"fmt.Print":   func(...any) (int, error) { return 0, nil },
		"fmt.Println": func(...any) (int, error) { return 0, nil },
		"fmt.Printf":  func(string, ...any) (int, error) { return 0, nil },
		"fmt.Scan":    func(...any) (int, error) { return 0, io.EOF },
		"fmt.Scanln":  func(...any) (int, error) { return 0, io.EOF },
		"fmt.Scanf":   func(string, ...any) (int, error) { return 0, io.EOF },
	}
}
