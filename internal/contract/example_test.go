package contract_test

import (
	"encoding/json"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/contract"
)

func ExampleCompile() {
	schema, err := contract.Compile(json.RawMessage(`{"type": "object", "required": ["total"],
		"constraints": {"properties": {"lines": {"type": "array", "min_items": 1}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(schema.Check(json.RawMessage(`{"total": 3, "lines": ["a"]}`)) == nil)
	violation := schema.Check(json.RawMessage(`{"total": 3, "lines": []}`))
	fmt.Println(violation.Mismatch, violation.Metadata["value_path"])
	// Output:
	// true
	// min_items_violation /lines
}
