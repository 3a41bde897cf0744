package provider

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// slowModel answers when the test lets it.
type slowModel struct {
	mu    sync.Mutex
	asked map[string]int // guarded by mu; by owner
	reply chan struct{}
}

func (m *slowModel) wait(ctx context.Context, owner agent.Owner) error {
	m.mu.Lock()
	m.asked[owner.Name]++
	m.mu.Unlock()
	select {
	case <-m.reply:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (m *slowModel) Program(ctx context.Context, r Request) (Reply, error) {
	return Reply{Code: "x"}, m.wait(ctx, r.Owner)
}

func (m *slowModel) Chat(ctx context.Context, r ChatRequest) (ChatReply, error) {
	return ChatReply{Content: "x"}, m.wait(ctx, r.Owner)
}

func (m *slowModel) Name() string { return "slow" }

// Of one owner's many requests to a slow model, only as many as one owner may have are sent. Another owner's request is
// sent at once.
func TestSharedModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &slowModel{asked: map[string]int{}, reply: make(chan struct{})}
		p := Shared(m, 6)
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 1000 {
			all.Go(func() {
				if owner := (agent.Owner{Name: "storm"}); i%2 == 0 {
					_, _ = p.Program(ctx, Request{Owner: owner})
				} else {
					_, _ = p.Chat(ctx, ChatRequest{Owner: owner})
				}
			})
		}
		synctest.Wait()
		other := make(chan error, 1)
		go func() {
			_, err := p.Program(t.Context(), Request{Owner: agent.Owner{Name: "other"}})
			other <- err
		}()
		synctest.Wait()
		if m.asked["storm"] != 6 || m.asked["other"] != 1 {
			t.Errorf("sent were %v", m.asked)
		}
		stop()
		all.Wait()
		m.reply <- struct{}{}
		if err := <-other; err != nil {
			t.Error(err)
		}
		if n, waiting := p.(*shared).places.Used(); n != 0 || waiting != 0 {
			t.Errorf("%d places are taken, %d wait", n, waiting)
		}
	})
}
