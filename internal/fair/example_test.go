package fair_test

import (
	"fmt"
	"time"

	"github.com/recurgentd/recurgentd/internal/fair"
)

// An owner that is alone holds at most three quarters, so that the next one finds room.
func ExampleShare() {
	places := fair.NewShare[string](3)
	for range 4 {
		fmt.Println("ann", places.Try("ann", 1))
	}
	fmt.Println("ben", places.Try("ben", 1))
	// Output:
	// ann true
	// ann true
	// ann true
	// ann false
	// ben true
}

func ExampleRates() {
	now := time.Unix(0, 0)
	requests := fair.NewRates[string](func() time.Time { return now })
	fmt.Println(requests.Take("ann", 1).OK)
	refused := requests.Take("ann", 1)
	fmt.Println(refused.OK, refused.Reset)
	now = now.Add(refused.Reset)
	fmt.Println(requests.Take("ann", 1).OK)
	// Output:
	// true
	// false 1s
	// true
}
