package ids_test

import (
	"fmt"
	"strings"

	"github.com/recurgentd/recurgentd/internal/agent/ids"
)

// An id holds the time at which it was made.
func ExampleTime() {
	id := ids.New("call")
	fmt.Println(strings.HasPrefix(id, "call_"), !ids.Time(id).IsZero())
	// Output: true true
}
