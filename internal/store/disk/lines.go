package disk

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is the longest line in bytes that an imported file may have. No call leaves longer ones.
const maxLine = 256 << 20

// eachLine calls visit with the lines of a file in order, and their lengths. Lines longer than maxLine are truncated. A
// line is valid until visit returns.
func eachLine(f io.ReaderAt, size int64, visit func(line []byte, length int64)) error {
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, size), 256<<10)
	var line []byte
	length := int64(0)
	for {
		part, err := r.ReadSlice('\n')
		length += int64(len(part))
		line = append(line, part[:min(len(part), maxLine-len(line))]...)
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if length > 0 {
			visit(bytes.TrimSuffix(line, []byte("\n")), length)
		}
		line, length = line[:0], 0
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
