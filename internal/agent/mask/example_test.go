package mask_test

import (
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent/mask"
)

func ExampleRules_JSON() {
	rules := mask.Compile(mask.Defaults())
	shown, changed := rules.JSON(json.RawMessage(`{"user":"ann","password":"geheim"}`))
	fmt.Println(string(shown), changed)
	// Output: {"user":"ann","password":"[masked]"} true
}

// Known finds a secret in any of the encodings in which it may appear.
func ExampleKnown() {
	known := mask.NewKnown("s3cr3t&key")
	fmt.Println(known.String("https://example.com/?k=s3cr3t%26key"))
	// Output: https://example.com/?k=[masked]
}
