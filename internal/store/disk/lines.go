package disk

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is how long a line may be in a file that is imported: longer ones no call leaves.
const maxLine = 256 << 20

// eachLine visits the lines of a file in order, with their lengths. A line that is longer than maxLine comes cut off there.
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
