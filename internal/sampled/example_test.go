package sampled_test

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/sampled"
)

// Fewer cases than wanted are all run, in any tier.
func ExampleOf() {
	for _, name := range sampled.Of([]string{"empty", "one", "many"}, 5) {
		fmt.Println(name)
	}
	// Output:
	// empty
	// one
	// many
}
