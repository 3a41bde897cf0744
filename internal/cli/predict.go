package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/recurgentd/recurgentd/internal/cli/examplefile"
	"github.com/recurgentd/recurgentd/internal/client"
)

// predictFlags holds the flags of predict.
type predictFlags struct {
	signature, inputs, demos string // JSON, or @FILE
	session, model, adapter  string
}

func predictCommand(sh Shell) *cobra.Command {
	var f predictFlags
	c := operatorCommand(sh, "recurgentd", operation{use: "predict [NAME] [INPUT=VALUE...]",
		short: "Have the model answer by a signature", most: 200,
		long: `Have the model answer once by a signature: declared inputs go in, declared outputs come back. The signature is a
named one of the daemon, or --signature with its instructions, inputs and outputs. Values are JSON where they
parse as JSON, else text. What stands as JSON is passed on as it is; @FILE reads it from a file, YAML too.`,
		example: `--signature '{"inputs": [{"name": "question"}], "outputs": [{"name": "answer"}]}' question="Capital of France?"`,
		run:     func(t *errand) error { return t.predict(&f) }})
	c.Example += "\n  recurgentd predict --signature @triage.yaml --demos @solved.json --inputs @ticket.json\n  recurgentd predict qa question=why --session sess_06gzqwq081srb0e6zx42fm96t4"
	c.Flags().StringVar(&f.signature, "signature", "", "the signature, a JSON object or @FILE")
	c.Flags().StringVar(&f.inputs, "inputs", "", "the inputs, a JSON object or @FILE; INPUT=VALUE adds to them")
	c.Flags().StringVar(&f.demos, "demos", "", "solved examples, a JSON array or @FILE")
	c.Flags().StringVar(&f.session, "session", "",
		"id of the session whose earlier turns count and that keeps this one")
	c.Flags().StringVar(&f.model, "model", "", "the model, instead of the session's or the daemon's")
	c.Flags().StringVar(&f.adapter, "adapter", "", "how outputs are asked for: lines, json or json_schema")
	return c
}

// request returns the path and body of the request.
func (f *predictFlags) request(args []string) (path string, body map[string]any, err error) {
	path, body = "/v1/predict", map[string]any{}
	switch {
	case f.signature == "" && (len(args) == 0 || strings.Contains(args[0], "=")):
		return "", nil, errors.New("predict needs the NAME of a signature, or --signature")
	case f.signature == "":
		path, args = "/v1/signatures/"+url.PathEscape(args[0])+"/predict", args[1:]
	default:
		if body["signature"], err = jsonOrFile("--signature", f.signature); err != nil {
			return "", nil, err
		}
	}
	inputs := map[string]json.RawMessage{}
	if f.inputs != "" {
		data, err := jsonOrFile("--inputs", f.inputs)
		if err != nil {
			return "", nil, err
		}
		if json.Unmarshal(data, &inputs) != nil || inputs == nil {
			return "", nil, errors.New("--inputs: not a JSON object")
		}
	}
	more := map[string]json.RawMessage{}
	for _, a := range args {
		name, value, ok := strings.Cut(a, "=")
		if !ok || name == "" {
			return "", nil, fmt.Errorf("%q is not INPUT=VALUE", a)
		}
		more[name] = client.Value(value)
	}
	maps.Copy(inputs, more)
	body["inputs"] = inputs
	if f.demos != "" {
		if body["demos"], err = jsonOrFile("--demos", f.demos); err != nil {
			return "", nil, err
		}
	}
	for name, value := range map[string]string{"session_id": f.session, "model": f.model, "adapter": f.adapter} {
		if value != "" {
			body[name] = value
		}
	}
	return path, body, nil
}

// jsonOrFile returns value if it is JSON, or for @FILE the content of the file, which may also be YAML.
func jsonOrFile(flag, value string) (json.RawMessage, error) {
	path, file := strings.CutPrefix(value, "@")
	if !file {
		if !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("%s: %q is not JSON; write @FILE to read a file", flag, value)
		}
		return json.RawMessage(value), nil
	}
	data, err := readSmallFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	out, err := examplefile.JSON(path, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return out, nil
}

func (t *errand) predict(f *predictFlags) error {
	path, body, err := f.request(t.args)
	if err != nil {
		return exitWith(ExitUsage, err)
	}
	spin := startSpinner(t.sh, "the model answers")
	data, err := t.c.Do(t.ctx, http.MethodPost, path, body)
	spin.stop()
	if err != nil {
		return err
	}
	if !t.out.human() {
		return t.out.document(data)
	}
	var answer struct {
		Outputs json.RawMessage `json:"outputs"`
	}
	if err := t.read(path, data, &answer); err != nil {
		return err
	}
	return t.out.indented(answer.Outputs)
}
