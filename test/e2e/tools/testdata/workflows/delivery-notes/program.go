package tool

import (
	"net/url"
	"path"
	"strconv"

	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	urls, ok := call.Arg(0, "urls").([]any)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "urls must be a list")
	}
	out := []any{}
	for _, u := range urls {
		address, ok := u.(string)
		if !ok {
			return nil, recurgent.Fail("invalid_input", "urls must be a list of strings")
		}
		parsed, err := url.Parse(address)
		if err != nil {
			return nil, recurgent.Fail("invalid_input", err.Error())
		}
		resp, err := call.Fetch(address)
		if err != nil {
			return nil, err
		}
		if resp.Status == 404 {
			out = append(out, nil)
			continue
		}
		if resp.Status >= 400 {
			return nil, recurgent.Fail("fetch_failed", address+" answered "+strconv.Itoa(resp.Status))
		}
		kind := resp.Header["Content-Type"]
		if kind == "" {
			kind = "application/octet-stream"
		}
		f, err := call.Create(path.Base(parsed.Path), kind)
		if err != nil {
			return nil, err
		}
		data := resp.Bytes()
		if _, err := f.Write(data); err != nil {
			return nil, err
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
		out = append(out, map[string]any{"file": f.Ref(), "bytes": len(data)})
	}
	return out, nil
}
