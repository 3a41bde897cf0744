package tool

import (
	"recurgent"
)

func Run(call *recurgent.Call) (any, error) {
	urls, ok := call.Arg(0, "urls").([]any)
	if !ok {
		return nil, recurgent.Fail("invalid_input", "urls must be a list")
	}
	out := []map[string]any{}
	for _, u := range urls {
		url, ok := u.(string)
		if !ok {
			return nil, recurgent.Fail("invalid_input", "urls must be a list of strings")
		}
		file, err := call.FetchFile(url)
		if err != nil {
			return nil, err
		}
		info, err := call.FileInfo(file)
		if err != nil {
			return nil, err
		}
		out = append(out, map[string]any{"file": file, "bytes": info.Bytes})
	}
	return out, nil
}
