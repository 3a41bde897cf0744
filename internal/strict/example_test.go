package strict_test

import (
	"errors"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/strict"
)

func ExampleMembers() {
	err := strict.Members([]byte(`{"method": "add", "args": [2, 3]}`), func(name, value []byte) error {
		fmt.Printf("%s: %s\n", name, value)
		return nil
	})
	fmt.Println(err)
	// Output:
	// method: "add"
	// args: [2, 3]
	// <nil>
}

// encoding/json takes the last of two members of one name.
func ExampleCheck() {
	err := strict.Check([]byte(`{"args": [1], "args": [2]}`))
	if fault, is := errors.AsType[*strict.Error](err); is {
		fmt.Println(fault.Pointer, fault.Reason)
	}
	// Output: /args appears twice
}
