package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/dragoman-mcp/dragoman/toolkit"
)

// Limits of what is kept in memory.
const (
	maxRecords    = 1000
	maxRecordSize = 64 << 10 // bytes of JSON
)

const recordScheme = "demo://records/"

// records keeps what create_record stored, as it was sent, until the Demo ends.
type records struct {
	mu   sync.Mutex
	next map[string]int    // last number given, by table
	data map[string]fields // by URI
}

var recordTool = toolkit.Tool{
	Name:  "create_record",
	Title: "Create a record (新建记录)",
	Description: `Stores a new record (新建一条记录) in a table of this server's in-memory database and returns the id
		it was given. Calling it twice creates two records. Any object is accepted as data. Records are gone
		when the server ends.`,
	Hints: toolkit.Hints{ReadOnly: toolkit.No, Destructive: toolkit.No, Idempotent: toolkit.No, OpenWorld: toolkit.No},
	Examples: []toolkit.Example{
		{Ask: "Add the customer Lin Jing from Hangzhou", Arguments: `{"table":"customers","data":{"name":"Lin Jing","city":"Hangzhou"}}`},
	},
}

type newRecord struct {
	Table string `json:"table" desc:"Table to store in (表名), created on first use: letters, digits and _, e.g. customers" pattern:"^[A-Za-z][A-Za-z0-9_]{0,63}$"`
	Data  fields `json:"data"`
}

// fields are those of a record: any object, kept as it was sent.
type fields json.RawMessage

// JSONSchema admits any object.
func (fields) JSONSchema() json.RawMessage {
	return json.RawMessage(`{"type":"object","description":"The record's fields (记录内容), e.g. {\"name\": \"Lin Jing\", \"city\": \"Hangzhou\"}","additionalProperties":true}`)
}

// UnmarshalJSON keeps the bytes.
func (f *fields) UnmarshalJSON(data []byte) error {
	*f = bytes.Clone(data)
	return nil
}

type created struct {
	ID    string `json:"id" desc:"Id of the new record, unique in this server (记录ID)"`
	Table string `json:"table" desc:"Table it is in"`
	URI   string `json:"uri" desc:"Resource under which the record can be read"`
}

func (s *records) create(_ context.Context, args newRecord) (created, error) {
	if len(args.Data) > maxRecordSize {
		return created{}, toolkit.Refuse("The record has %d bytes, at most %d are stored. Leave something out.", len(args.Data), maxRecordSize)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.data) >= maxRecords {
		return created{}, toolkit.Refuse("The demo database is full: it keeps %d records.", maxRecords)
	}
	if s.data == nil {
		s.next, s.data = map[string]int{}, map[string]fields{}
	}
	s.next[args.Table]++
	id := fmt.Sprintf("%s-%d", args.Table, s.next[args.Table])
	uri := recordScheme + args.Table + "/" + id
	s.data[uri] = args.Data
	return created{id, args.Table, uri}, nil
}

// read finds a record by its URI.
func (s *records) read(uri string) (fields, bool) {
	if !strings.HasPrefix(uri, recordScheme) {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.data[uri]
	return data, ok
}
