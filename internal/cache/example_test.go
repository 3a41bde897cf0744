package cache_test

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/cache"
)

func ExampleNew() {
	squares := cache.New[int, int](100)
	defer squares.StopAllGoroutines()
	squares.Set(3, 9)
	square, known := squares.GetIfPresent(3)
	fmt.Println(square, known)
	_, known = squares.GetIfPresent(4)
	fmt.Println(known)
	// Output:
	// 9 true
	// false
}
