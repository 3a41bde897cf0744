package spend

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.yaml.in/yaml/v3"

	"github.com/recurgentd/recurgentd/internal/agent"
)

// Price is the price of a model per million tokens.
type Price struct{ Input, CachedInput, Output float64 }

// PriceList holds prices of models in one currency. The nil list has no prices.
type PriceList struct {
	Currency string
	models   map[string]Price
}

// dated matches the date that servers append to a model's name: a request for gpt-4.1 is answered by
// gpt-4.1-2025-04-14.
var dated = regexp.MustCompile(`-\d{4}-\d{2}-\d{2}$`)

// Cost returns the cost of the tokens; ok is false if the model has no price. Zero tokens cost nothing with any model,
// unless l is nil.
func (l *PriceList) Cost(model string, t agent.Tokens) (float64, bool) {
	if l == nil {
		return 0, false
	}
	if t.Sum() == 0 {
		return 0, true
	}
	p, ok := l.models[model]
	if !ok {
		p, ok = l.models[dated.ReplaceAllString(model, "")]
	}
	const million = 1e6
	return (float64(t.Prompt-t.Cached)*p.Input + float64(t.Cached)*p.CachedInput +
		float64(t.Completion)*p.Output) / million, ok
}

// Cost returns the cost of one call's requests at current prices, and the currency; known is false if the model has no
// price. It is an upper bound, because calls do not record cached tokens.
func (l *Ledger) Cost(model string, u agent.Usage) (amount float64, currency string, known bool) {
	prices := l.o.Prices.Now()
	if amount, known = prices.Cost(model, agent.Tokens{Prompt: int64(u.PromptTokens),
		Completion: int64(u.CompletionTokens)}); !known {
		return 0, "", false
	}
	return amount, prices.Currency, true
}

// A PriceError reports an error in a price file.
type PriceError struct {
	File   string
	Line   int    // from 1
	Key    string // such as models.gpt-4.1.input, or ""
	Reason string
}

func (e *PriceError) Error() string {
	at := e.File + ":" + strconv.Itoa(e.Line) + ": "
	if e.Key != "" {
		at += e.Key + " "
	}
	return at + e.Reason
}

// maxPriceFile bounds the size of a price file, in bytes.
const maxPriceFile = 1 << 20

// ReadPrices reads a price file of at most 1 MiB. Errors include *PriceError and those of the file system.
func ReadPrices(file string) (*PriceList, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxPriceFile {
		return nil, fmt.Errorf("%s is not a file of at most 1 MiB", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return parsePrices(file, text)
}

// parsePrices parses a price file. file is its name for errors.
func parsePrices(file string, text []byte) (*PriceList, error) {
	r := priceReader{file: file}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); err != nil {
		return nil, &PriceError{file, 1, "", "is not YAML with prices: " + err.Error()}
	}
	list := &PriceList{models: map[string]Price{}}
	err := r.members(doc.Content[0], "", func(key string, k, v *yaml.Node) error {
		switch key {
		case "currency":
			list.Currency = v.Value
			if v.Kind != yaml.ScalarNode || !regexp.MustCompile(`^[A-Z]{3}$`).MatchString(v.Value) {
				return r.fail(v, key, "must be three capital letters, such as USD")
			}
		case "models":
			return r.members(v, "models.", func(model string, _, v *yaml.Node) error {
				p, err := r.price(v, "models."+model)
				list.models[model] = p
				return err
			})
		default:
			return r.fail(k, key, "is not known: currency and models are")
		}
		return nil
	})
	if err == nil && list.Currency == "" {
		err = r.fail(doc.Content[0], "currency", "is missing")
	}
	if err != nil {
		return nil, err
	}
	return list, nil
}

type priceReader struct{ file string }

func (r priceReader) fail(n *yaml.Node, key, reason string) error {
	return &PriceError{r.file, n.Line, key, reason}
}

// members visits the members of a mapping and rejects duplicates.
func (r priceReader) members(n *yaml.Node, prefix string, visit func(key string, k, v *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return r.fail(n, trimDot(prefix), "must be a mapping")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if seen[k.Value] {
			return r.fail(k, prefix+k.Value, "appears twice")
		}
		seen[k.Value] = true
		if err := visit(k.Value, k, v); err != nil {
			return err
		}
	}
	return nil
}

func trimDot(prefix string) string {
	if prefix == "" {
		return ""
	}
	return prefix[:len(prefix)-1]
}

// price parses the prices of one model. cached_input defaults to input.
func (r priceReader) price(n *yaml.Node, key string) (Price, error) {
	given := map[string]float64{}
	err := r.members(n, key+".", func(name string, k, v *yaml.Node) error {
		if name != "input" && name != "cached_input" && name != "output" {
			return r.fail(k, key+"."+name, "is not known: input, cached_input and output are")
		}
		value, err := strconv.ParseFloat(v.Value, 64)
		if v.Kind != yaml.ScalarNode || err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
			return r.fail(v, key+"."+name, "must be a number of at least 0")
		}
		given[name] = value
		return nil
	})
	if err != nil {
		return Price{}, err
	}
	for _, name := range []string{"input", "output"} {
		if _, ok := given[name]; !ok {
			return Price{}, r.fail(n, key+"."+name, "is missing")
		}
	}
	p := Price{given["input"], given["input"], given["output"]}
	if cached, ok := given["cached_input"]; ok {
		p.CachedInput = cached
	}
	return p, nil
}

// Prices is a price file that is read again after it changes. It is safe for concurrent use. A nil *Prices has no
// prices.
type Prices struct {
	file string
	log  zerolog.Logger

	mu       sync.Mutex
	list     *PriceList // guarded by mu, as are all fields below
	changed  time.Time
	size     int64
	rejected string // the last error, to log each only once
}

// OpenPrices reads the price file. If a later change of it is invalid, the change is logged and the earlier prices stay
// in force.
func OpenPrices(file string, log zerolog.Logger) (*Prices, error) {
	list, err := ReadPrices(file)
	if err != nil {
		return nil, err
	}
	p := &Prices{file: file, log: log, list: list}
	if info, err := os.Stat(file); err == nil {
		p.changed, p.size = info.ModTime(), info.Size()
	}
	return p, nil
}

// Now returns the current prices. It reads the file again if its time or size has changed. p may be nil.
func (p *Prices) Now() *PriceList {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.file)
	if err == nil && info.ModTime().Equal(p.changed) && info.Size() == p.size {
		return p.list
	}
	var list *PriceList
	if err == nil {
		p.changed, p.size = info.ModTime(), info.Size()
		list, err = ReadPrices(p.file)
	}
	switch {
	case err == nil:
		p.list, p.rejected = list, ""
		p.log.Info().Str("file", p.file).Msg("prices were read again")
	case err.Error() != p.rejected:
		p.rejected = err.Error()
		p.log.Error().Err(err).Msg("the file of prices cannot be read; the prices read before stay in force")
	}
	return p.list
}
