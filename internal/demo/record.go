package demo

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
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
	next map[string]int            // last number given, by table
	data map[string]jsontext.Value // by URI
}

var recordTool = tool{
	name:  "create_record",
	title: "Create a record (新建记录)",
	description: `Stores a new record (新建一条记录) in a table of this server's in-memory database and returns the id
		it was given. Calling it twice creates two records. Any object is accepted as data. Records are gone
		when the server ends.`,
	input: `{
		"type": "object",
		"properties": {
			"table": {
				"type": "string",
				"pattern": "^[A-Za-z][A-Za-z0-9_]{0,63}$",
				"description": "Table to store in (表名), created on first use: letters, digits and _, e.g. customers"
			},
			"data": {
				"type": "object",
				"description": "The record's fields (记录内容), e.g. {\"name\": \"Lin Jing\", \"city\": \"Hangzhou\"}",
				"additionalProperties": true
			}
		},
		"required": ["table", "data"],
		"additionalProperties": false
	}`,
	output: `{
		"type": "object",
		"properties": {
			"id": {"type": "string", "description": "Id of the new record, unique in this server (记录ID)"},
			"table": {"type": "string", "description": "Table it is in"},
			"uri": {"type": "string", "description": "Resource under which the record can be read"}
		},
		"required": ["id", "table", "uri"],
		"additionalProperties": false
	}`,
	hints: hints{},
}

type created struct {
	ID    string `json:"id"`
	Table string `json:"table"`
	URI   string `json:"uri"`
}

func (s *records) create(_ context.Context, args struct {
	Table string         `json:"table"`
	Data  jsontext.Value `json:"data"`
}, _ progress) (reply, error) {
	if len(args.Data) > maxRecordSize {
		return reply{}, refuse("The record has %d bytes, at most %d are stored. Leave something out.", len(args.Data), maxRecordSize)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.data) >= maxRecords {
		return reply{}, refuse("The demo database is full: it keeps %d records.", maxRecords)
	}
	if s.data == nil {
		s.next, s.data = map[string]int{}, map[string]jsontext.Value{}
	}
	s.next[args.Table]++
	id := fmt.Sprintf("%s-%d", args.Table, s.next[args.Table])
	uri := recordScheme + args.Table + "/" + id
	s.data[uri] = args.Data.Clone()
	return reply{data: created{id, args.Table, uri}}, nil
}

// read finds a record by its URI.
func (s *records) read(uri string) (jsontext.Value, bool) {
	if !strings.HasPrefix(uri, recordScheme) {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	data, ok := s.data[uri]
	return data, ok
}
