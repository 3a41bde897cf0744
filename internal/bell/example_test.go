package bell_test

import (
	"fmt"
	"sync/atomic"

	"github.com/recurgentd/recurgentd/internal/bell"
)

// A waiter takes the channel before it looks for news, so that it misses no ring in between.
func ExampleBell() {
	var rings bell.Bell
	var news atomic.Bool
	go func() {
		news.Store(true)
		rings.Ring()
	}()
	for {
		rung := rings.Wait()
		if news.Load() {
			break
		}
		<-rung
	}
	fmt.Println("there is news")
	// Output: there is news
}
