package mcp

import (
	"context"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// capabilities returns those that clients of an era are told.
func (d Description) capabilities(era Era) json.RawMessage {
	o := object(d.Capabilities)
	extensions := object(o.Get("extensions"))
	switch {
	case era == Modern && o.Get("tasks") != nil:
		o = o.Clone()
		o.Delete("tasks")
	case era == Legacy && extensions.Get(TasksExtension) != nil:
		o, extensions = o.Clone(), extensions.Clone()
		extensions.Delete(TasksExtension)
		if o.Set("extensions", extensions.Bytes()); len(extensions.Members) == 0 {
			o.Delete("extensions")
		}
	default:
		return orEmpty(d.Capabilities)
	}
	return o.Bytes()
}

// hasTasks reports whether capabilities have tasks of the modern era.
func hasTasks(capabilities json.RawMessage) bool {
	return rawjson.Kind(object(object(capabilities).Get("extensions")).Get(TasksExtension)) == '{'
}

// mayUseTasks returns the error for a request about tasks of a client of the modern
// era that did not declare the extension, or where there are none (SEP-2663,
// "Protocol Errors").
func (v *incomingRequest) mayUseTasks(ctx context.Context) error {
	switch {
	case !hasTasks(v.host.Describe(ctx).Capabilities):
		return &RPCError{Code: codeMethodNotFound, Message: "there are no tasks here"}
	case !v.in.tasks:
		return &RPCError{
			Code: codeMissingCapability, Message: "a client that asks about tasks has to declare the extension " + TasksExtension,
			Data: json.RawMessage(`{"requiredCapabilities":{"extensions":{"` + TasksExtension + `":{}}}}`),
		}
	}
	return nil
}
