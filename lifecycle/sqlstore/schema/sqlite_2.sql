-- Interlock, tables of version 2, from those of version 1, for SQLite. Programs that
-- use version 1 can still use the tables.

-- The highest fencing token that a change of the object had. A program of version 1
-- neither compares nor writes it: end such programs before changes have tokens.
ALTER TABLE interlock_objects ADD COLUMN fence INTEGER NOT NULL DEFAULT 0;

UPDATE interlock_schema SET version = 2;
