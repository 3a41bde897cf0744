//go:build !linux

package worker

import "errors"

func runTools() error { return errors.ErrUnsupported }
