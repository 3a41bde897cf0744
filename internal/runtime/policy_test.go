package runtime

import (
	"fmt"
	"sync"
	"testing"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/env"
	"github.com/recurgentd/recurgentd/internal/runtime/runtimetest"
	"github.com/recurgentd/recurgentd/internal/store"
)

// Two runtimes on one store change different members of the policy at the same time. Neither reverts the other's
// change.
func TestPolicyOfTwoRuntimes(t *testing.T) {
	t.Parallel()
	box := &runtimetest.Box{}
	one, _ := scripted(t, box, nil, nil)
	other, _ := scripted(t, box, nil, func(o *env.Options) { o.Store = one.env.Options.Store })
	const changes = 40
	var together sync.WaitGroup
	for name, r := range map[string]*Runtime{"one": one, "other": other} {
		together.Go(func() {
			for i := range changes {
				_, err := r.ChangePolicy(t.Context(), func(now agent.Policy) (agent.Policy, *agent.AuditEntry, error) {
					now.ArtifactReadRoles = append(append([]string{}, now.ArtifactReadRoles...), fmt.Sprint(name, i))
					return now, &agent.AuditEntry{ID: fmt.Sprint("aud_", name, i)}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	together.Wait()
	p, revision, err := one.env.Store.Policy(t.Context())
	if err != nil || len(p.ArtifactReadRoles) != 2*changes || revision != 2*changes {
		t.Errorf("got %d roles and revision %d, %v, want %d", len(p.ArtifactReadRoles), revision, err, 2*changes)
	}
	if trail, err := one.env.Store.Audit(t.Context(),
		store.AuditQuery{Limit: 1000}); err != nil || len(trail) != 2*changes {
		t.Errorf("got %d audit entries, %v, want %d", len(trail), err, 2*changes)
	}
}
