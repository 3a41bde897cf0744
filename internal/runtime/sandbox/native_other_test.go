//go:build !linux

package sandbox

import "github.com/recurgentd/recurgentd/internal/runtime/recurgent"

func outPrograms() map[string]func(*recurgent.Call) (any, error) { return nil }
