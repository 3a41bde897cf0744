package mcp

import (
	"errors"
	"sync"
	"time"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// listenAs is the id of the bridge's own subscription.
const listenAs = "recurgentd-mcp"

// watch subscribes to changes of the list of tools and passes them to the client, whose version allows notifications at
// any time. It returns once the subscription is active, or has failed for the first time; it is then repeated until the
// bridge ends.
func (b *bridge) watch() {
	ready := make(chan struct{})
	begun := sync.OnceFunc(func() { close(ready) })
	b.watching.Go(func() {
		for again := false; ; again = true {
			b.listen(begun, again)
			begun()
			select {
			case <-time.After(listenPause):
			case <-b.ctx.Done():
				return
			}
		}
	})
	<-ready
}

// listenPause is the pause before a lost subscription is repeated.
const listenPause = 5 * time.Second

// listen holds one subscription until the daemon or the bridge ends it. Changes during a pause are unknown, so with
// again it notifies the client at the beginning.
func (b *bridge) listen(begun func(), again bool) {
	request := agent.Encoded(map[string]any{"jsonrpc": "2.0", "id": listenAs, "method": methodListen,
		"params": map[string]any{
			"notifications": map[string]any{"toolsListChanged": true},
			"_meta": map[string]any{metaVersion: newestVersion, metaClient: map[string]any{"name": listenAs,
				"version": "1"},
				metaCapabilities: map[string]any{}}}})
	m, _ := readMessage(request)
	err := b.each(b.ctx, request, b.header(m), func(message []byte) (done bool) {
		begun()
		m, _ := readMessage(message)
		if m.method == methodListChanged || again && m.method == methodListens {
			b.write([]byte(`{"jsonrpc":"2.0","method":"` + methodListChanged + `"}`))
		}
		return m.method == ""
	})
	if err != nil && b.ctx.Err() == nil {
		b.o.Logger.Debug().Err(errors.New(err.Message)).Msg(
			"changes of the list of tools are not heard of until the daemon answers again")
	}
}
