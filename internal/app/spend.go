package app

import (
	"context"
	"fmt"

	"github.com/recurgentd/recurgentd/internal/agent"
	"github.com/recurgentd/recurgentd/internal/runtime/spend"
	"github.com/recurgentd/recurgentd/internal/telemetry"
)

// SpendOptions limit requests to models, and give their prices.
type SpendOptions struct {
	// MaxCompletionTokens bounds the reply to one model request, in tokens, 1024 to 1048576.
	MaxCompletionTokens int `name:"max-completion-tokens" env:"RECURGENT_MAX_COMPLETION_TOKENS" value:"N" help:"tokens of the reply to one model request, at most; a request reserves as many of each cap"`
	// SpendDayTokens caps the tokens per day (UTC) of all namespaces together; 0 means no cap.
	SpendDayTokens int `name:"spend-day-tokens" env:"RECURGENT_SPEND_DAY_TOKENS" value:"N" default:"0: no cap" help:"tokens that the models may be asked a day (UTC), for all namespaces together; the policy has the caps of each"`
	// ModelPrices is a YAML file with the prices of tokens; "" means none. The daemon rereads it when it changes.
	ModelPrices string `name:"model-prices" env:"RECURGENT_MODEL_PRICES" value:"FILE" default:"none" help:"what a million tokens of each model cost (YAML), for recurgentd usage; read again when it changes"`
}

// openSpend opens the ledger of spent tokens. If the daemon has a cap it loads the accounts of all namespaces, since
// each counts. Otherwise an account is loaded at its first use. A shared store keeps the sums itself.
func (a *App) openSpend(ctx context.Context, o Options, p *parts) (err error) {
	so := spend.Options{Store: p.memory, Now: o.Now, Logger: a.log, DayTokens: int64(o.SpendDayTokens),
		Refused: p.metrics.SpendRefused}
	if p.shared != nil {
		so.Replica = func() string { return p.cluster.ID() }
	}
	if o.ModelPrices != "" {
		if so.Prices, err = spend.OpenPrices(o.ModelPrices, a.log); err != nil {
			return refuse("model-prices", "%s", err)
		}
	}
	names := []agent.Namespace{agent.DefaultNamespace}
	for after := agent.Namespace(""); so.DayTokens > 0 && p.shared == nil; {
		const page = 1000
		list, err := p.memory.ListNamespaces(ctx, after, page)
		if err != nil {
			return fmt.Errorf("list the namespaces: %w", err)
		}
		for _, n := range list {
			names, after = append(names, n.Name), n.Name
		}
		if len(list) < page {
			break
		}
	}
	ledger, err := spend.New(ctx, so, names...)
	if err != nil {
		return err
	}
	p.spend = ledger
	a.onStop("the costs of models", func(ctx context.Context) error { ledger.Record(ctx); return nil })
	return nil
}

// spendStats returns the figures of caps for metrics.
func spendStats(l *spend.Ledger) telemetry.Spend {
	return telemetry.Spend{Ratios: l.Ratios(), Reserved: l.Reserved()}
}

func (o *Options) checkSpend() error {
	const least, most = 1024, 1 << 20
	if o.MaxCompletionTokens < least || o.MaxCompletionTokens > most {
		return refuse("max-completion-tokens", "must be %d to %d, got %d", least, most, o.MaxCompletionTokens)
	}
	if o.SpendDayTokens < 0 || o.SpendDayTokens > 1e15 {
		return refuse("spend-day-tokens", "must be 0 to 1000000000000000, got %d", o.SpendDayTokens)
	}
	return nil
}
