package model

import "github.com/dragoman-mcp/dragoman/internal/wire/rawjson"

// An Object is a JSON object taken apart by one level: its members in their order, each
// value as the bytes that it had, so that what nobody edits stays as it was. The zero
// Object is empty. Its methods are Get, Set, Delete, All, Clone, Append and Bytes.
type Object = rawjson.Object

// ParseObject takes a document apart. It copies nothing: the document must not be changed
// afterwards. It fails where the document is no JSON object.
func ParseObject(document []byte) (*Object, error) { return rawjson.ParseObject(document) }
