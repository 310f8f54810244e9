"""Questions and the queries behind their answers: whether a query asks what its question asks."""
