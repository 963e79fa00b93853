select * from {{ ref('elders') }} where name is null
