package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
)

// hashMember stands before the hash at the end of an exported line.
const hashMember = `,"hash":"`

// VerifyExport checks a whole export: that each record is what its hash says and names the
// one before in its log, and that what it says of a record of another log is so, where the
// export has that one. It says nothing about what was before the first and behind the last
// of a log but what kept heads say.
func VerifyExport(r io.Reader, kept ...Head) (check Check, err error) {
	e := export{kept: kept, logs: map[string]*verifier{}, hashes: map[Head]bool{}}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 4*maxArguments)
	for n := 1; err == nil && lines.Scan(); n++ {
		err = e.line(n, lines.Bytes())
	}
	if err == nil {
		if err = lines.Err(); err == nil {
			err = e.end()
		}
	}
	named, pruned := mentions{}, removals{}
	for _, v := range e.order {
		check.Records += v.checked.Records
		check.Logs = append(check.Logs, v.checked)
		named.add(v.named)
		maps.Copy(pruned, v.pruned)
	}
	named.mark(check.Logs)
	check.Unseen = pruned.unseen(check.Logs, kept) // of what was before, an export says nothing
	return check, err
}

// An export is what was read of one.
type export struct {
	kept   []Head
	logs   map[string]*verifier
	order  []*verifier
	last   Head
	hashes map[Head]bool // of all records
}

func (e *export) line(n int, text []byte) error {
	at := bytes.LastIndex(text, []byte(hashMember))
	var stated struct {
		Hash Hash `json:"hash"`
	}
	if at < 0 || json.Unmarshal(append([]byte("{"), text[at+1:]...), &stated) != nil {
		return &Bad{e.last.Log, e.last.Seq + 1, fmt.Sprintf("line %d has no hash at its end", n)}
	}
	body := append(append([]byte(nil), text[:at]...), '}')
	if !bytes.Equal(line(body, stated.Hash), append(text[:len(text):len(text)], '\n')) {
		return &Bad{e.last.Log, e.last.Seq + 1, fmt.Sprintf("line %d has more behind its hash", n)}
	}
	record, err := parse(body)
	if err != nil {
		return &Bad{e.last.Log, e.last.Seq + 1, fmt.Sprintf("line %d is not a record: %v", n, err)}
	}
	v := e.logs[record.Log]
	if v == nil {
		v = &verifier{log: record.Log, kept: e.kept}
		e.logs[record.Log], e.order = v, append(e.order, v)
	}
	if err := v.next(record.row(body, stated.Hash)); err != nil {
		return err
	}
	e.last = v.checked.Head
	e.hashes[e.last] = true
	return nil
}

// end looks at what was kept, and at what logs say of each other.
func (e *export) end() error {
	for _, head := range e.kept {
		v := e.logs[head.Log]
		switch {
		case v == nil, head.Seq > v.checked.Head.Seq:
			return &Bad{head.Log, head.Seq, "it was there when its hash was noted, and is missing"}
		case head.Seq == v.start.Seq-1 && head.Hash != v.start.Prev:
			return &Bad{head.Log, head.Seq, "it is not the one that was there when its hash was noted: the log was written anew"}
		}
	}
	for _, v := range e.order {
		for _, head := range v.names {
			named := e.logs[head.Log]
			if named != nil && head.Seq >= named.checked.First && head.Seq <= named.checked.Head.Seq && !e.hashes[head] {
				return &Bad{head.Log, head.Seq, "it is another one than the one that log " + inStore(v.log) + " names"}
			}
		}
	}
	return nil
}
