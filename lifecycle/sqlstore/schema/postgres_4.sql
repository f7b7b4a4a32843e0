-- Interlock, tables of version 4, from those of version 3, for PostgreSQL. Programs that
-- use versions 1 to 3 can still use the tables.

-- The highest fencing token that a change of the object had. A program of an older version
-- neither compares nor writes it: end such programs before changes have tokens.
ALTER TABLE "interlock_objects" ADD COLUMN fence bigint NOT NULL DEFAULT 0;

UPDATE "interlock_schema" SET version = 4;
