package jsonenc_test

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent/jsonenc"
)

func ExampleFor() {
	type point struct {
		X int `json:"x"`
		Y int `json:"y,omitempty"`
	}
	encoder := jsonenc.For[point]()
	text, err := encoder.Marshal(&point{X: 3}, 64)
	fmt.Println(string(text), err)
	// Output: {"x":3} <nil>
}
