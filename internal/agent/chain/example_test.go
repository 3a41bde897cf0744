package chain_test

import (
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/agent/chain"
)

// A head that was noted elsewhere shows later whether the entries before it are still the same.
func ExampleLink() {
	head := chain.Start(agent.DefaultNamespace, 0, "")
	for _, action := range []string{"tool.put", "policy.patch"} {
		var err error
		if head, err = chain.Link(head, &agent.AuditEntry{ID: "audit_1", Action: action}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(head.Seq, head.Begun(), len(head.Hash))
	// Output: 2 true 64
}
